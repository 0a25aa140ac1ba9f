"""One file per kind of change."""

"""The kinds of changes, one per module."""

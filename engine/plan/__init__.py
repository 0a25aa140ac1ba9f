"""Scan planning: the files that a reader of a snapshot needs, with their deletes and residual filters."""

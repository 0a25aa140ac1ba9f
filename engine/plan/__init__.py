"""Scan planning: which files a snapshot's reader needs, with their deletes and what is left of the filter."""

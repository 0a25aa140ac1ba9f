"""Writes Arrow batches to new data files and delete files."""

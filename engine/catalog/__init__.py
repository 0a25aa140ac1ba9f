"""Catalogs: the current metadata file of each table, and its atomic replacement."""

"""Maintenance operations, which keep a table fast and small without changing its rows; one module per operation."""

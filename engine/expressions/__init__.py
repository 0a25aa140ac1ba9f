"""Filters: parsed from SQL-like text, bound to a schema, and evaluated on statistics."""

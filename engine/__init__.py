"""A complete Apache Iceberg table-format engine (spec v1, v2, v3)."""

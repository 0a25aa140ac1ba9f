"""Avro data and delete files."""

"""Avro object container files, decoded to columns and encoded from them."""

"""Profiles a table: measures its files and metadata, and finds what costs most (docs/design/profile.md)."""

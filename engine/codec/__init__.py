"""Bytes to nouns of the specification and back; pure: no storage, no clock, no table."""

"""Converts bytes to the objects of the specification and back. Pure: no storage, no clock, no table."""

"""Runs from a definition to a finished file."""

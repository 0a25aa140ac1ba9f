"""Decoded delete files: positions, deletion vectors, equality keys."""

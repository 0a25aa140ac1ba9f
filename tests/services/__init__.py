"""Servers that tests start for themselves, on this machine's loopback address only."""

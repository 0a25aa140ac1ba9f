"""Processes that are measured: their time and memory, and children that do one thing from start to end."""

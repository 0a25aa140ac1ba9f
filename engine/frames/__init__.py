"""Scans as frames of other libraries, which push their filters and columns into the plan."""

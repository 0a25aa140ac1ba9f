"""Commits: prepare (write files, once), stage (a snapshot for the current base), commit (compare and swap)."""

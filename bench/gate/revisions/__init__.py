"""Engines of other commits: built, and measured in pairs of processes under the cases of this checkout."""

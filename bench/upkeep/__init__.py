"""Upkeep by policy: what is due on a table, in which order, within which budget (docs/design/upkeep.md)."""

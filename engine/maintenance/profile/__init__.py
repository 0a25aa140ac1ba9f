"""The portrait of a table: what it is made of, what that costs, and what mends it (docs/design/profile.md)."""

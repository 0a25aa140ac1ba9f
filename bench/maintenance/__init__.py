"""Which maintenance of a table is due by a policy, and doing it."""

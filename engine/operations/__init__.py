"""What people do to the rows of a table."""

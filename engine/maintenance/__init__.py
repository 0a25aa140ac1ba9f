"""What keeps a table fast and small without changing its rows; one file an operation."""

"""Arrow batches to data files and delete files that nothing refers to yet."""

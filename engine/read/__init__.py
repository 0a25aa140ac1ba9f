"""A plan to Arrow batches."""

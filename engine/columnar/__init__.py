"""Arrow columns: schemas, projection by field id, masks, vectorized transforms."""

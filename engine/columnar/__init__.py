"""Arrow and Parquet: schemas, projection by field id, masks, metrics, vectorized transforms."""

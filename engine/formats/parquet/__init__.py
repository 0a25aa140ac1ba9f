"""Parquet files: footers, row groups, statistics and the writer."""

"""Data and delete files in Parquet, ORC and Avro: sources to read and writers."""

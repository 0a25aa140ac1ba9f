"""The metadata tables, as Arrow: one file a table, with the columns that Iceberg Java gives them."""

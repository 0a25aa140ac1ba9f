"""The metadata tables, as Arrow: one module per table, with the columns that Iceberg Java gives them."""

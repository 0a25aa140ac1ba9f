"""Reading Avro files: programs over inflated blocks, and the columns that they give."""

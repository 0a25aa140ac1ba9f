"""Writing rows of columns as Avro objects."""

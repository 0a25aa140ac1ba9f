"""Which metadata file is a table's current one, and changing that atomically."""

"""The nouns of the Iceberg specification: pure values, standard library only, no bytes and no storage."""

"""Secondary indexes: which values of a column each data file may hold. A plan asks `lookup.FileIndexes`."""

"""Pure statistics of measured samples: no clock, no files, no engine."""

"""Measuring: datasets, interleaved timing, the four measurements, and their records."""

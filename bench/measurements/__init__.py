"""A module for each measurement, with all that the harness knows of it; what it measures by is in `bench/trials`."""

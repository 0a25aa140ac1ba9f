"""What is measured: a module for each measurement, with all that the harness knows of it."""

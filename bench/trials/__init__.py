"""What is measured, as cases that are checked and ready to be timed."""

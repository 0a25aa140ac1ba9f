"""ORC files: footers and stripes."""

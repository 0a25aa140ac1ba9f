"""Reads plans to Arrow batches."""

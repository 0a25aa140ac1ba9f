"""Puffin files and their blobs."""

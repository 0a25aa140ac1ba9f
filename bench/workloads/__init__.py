"""Workloads: what data and which changes a benchmark uses.

They neither time nor print, and import without Spark running.
"""

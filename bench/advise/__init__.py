"""Advice: which layout would serve the queries of a table, what it costs, and when it pays."""

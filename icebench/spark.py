"""Tables on Spark: ``format("icebench")`` and views for a session."""

from icebench.engine.spark_source import prune_files, register, register_view, register_views

__all__ = ["prune_files", "register", "register_view", "register_views"]

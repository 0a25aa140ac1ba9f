"""Tables on Spark: ``format("icebench")`` and views for a session."""

from icebench.engine.spark_source import register, register_views

__all__ = ["register", "register_views"]

"""Tables on Spark: ``format("icebench")`` for a session."""

from icebench.engine.spark_source import register

__all__ = ["register"]

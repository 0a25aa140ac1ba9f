"""Scans, writes, planning and other jobs on Spark. PySpark is imported here and in `icebench.engine.spark_source`
only."""

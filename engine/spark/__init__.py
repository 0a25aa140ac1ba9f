"""Scans, writes, planning and other jobs on Spark. With `engine.spark_source`, the only home of PySpark."""

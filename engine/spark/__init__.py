"""The engine on Spark: executor writes, the native scan. The only home of PySpark."""

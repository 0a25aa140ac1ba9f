"""The benchmark and performance-analysis harness for Apache Iceberg tables."""

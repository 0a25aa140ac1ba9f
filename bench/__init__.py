"""The benchmark and performance-analysis harness for Apache Iceberg tables."""

if __name__ != "icebench.bench":  # else each class would exist twice
    raise ImportError("import icebench.bench, not bench")

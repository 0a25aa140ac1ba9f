"""The table-format engine; `icebench` has its public names, and the packages below are for the engine itself."""

if __name__ != "icebench.engine":  # else each class would exist twice
    raise ImportError("import icebench, not engine")

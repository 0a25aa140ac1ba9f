"""The architecture as data: who may know whom, which library lives where, what nobody may call.

A room is a package or module right below `engine` or `bench`; "" is `__init__.py` itself.
"""

ENGINE_ROWS: tuple[tuple[str, ...], ...] = (
    ("errors", "kernels"),
    ("display", "lazy_module"),
    ("spec", "runtime"),
    ("codec", "expressions", "storage"),
    ("columnar",),
    ("formats", "file_indexes"),
    ("plan", "deletes"),
    ("read", "write", "commit"),
    ("catalog", "spark"),
    ("operations", "inspect", "maintenance", "frames"),
    ("scan",),
    ("table",),
    ("opening",),
    ("spark_source",),
    ("",),
)
"""A row imports lower rows only; rooms of one row do not import each other."""

BENCH_ARROWS: dict[str, tuple[str, ...]] = {
    "": (),
    "errors": (),
    "progress": (),
    "file_lock": (),
    "garbage": (),
    "markdown": (),
    "definition": ("errors",),
    "plugins": ("errors",),
    "java_home": ("errors",),
    "setup_jars": ("java_home",),
    "ivy_jars": ("setup_jars",),
    "s3_jars": ("ivy_jars",),
    "spark_session": ("s3_jars",),
    "machine": ("setup_jars",),
    "doctor": ("machine",),
    "statistics": (),
    "records": ("statistics",),
    "costs": ("definition",),
    "maintenance": ("costs",),
    "layouts": ("definition", "plugins", "statistics"),
    "workloads": ("layouts", "maintenance"),
    "engines": ("layouts", "spark_session"),
    "truth": ("engines",),
    "processes": ("records", "engines", "workloads"),
    "tables": ("truth", "processes", "progress", "file_lock"),
    "execution": ("garbage", "truth", "processes", "progress"),
    "trials": ("execution", "tables", "maintenance"),
    "measurements": ("trials",),
    "experiment": ("costs", "execution"),
    "runs": ("experiment", "measurements"),
    "advise": ("costs", "runs"),
    "gate": ("engines", "file_lock", "garbage", "markdown", "statistics", "workloads"),
    "report": ("advise", "costs", "gate", "measurements"),
    "study": ("report", "experiment"),
    "cli": ("report", "study", "experiment", "doctor", "gate", "maintenance"),
    "suites": ("runs", "gate"),
    "asv_run": ("cli",),
}
"""A room imports what its arrows reach, however many steps away."""

BENCH_MAY_USE_OF_ENGINE = ("display", "errors", "spark")
"""bench uses the engine as any user does: names of `icebench`, and these rooms."""

PURE_ROOMS = ("engine.spec", "bench.statistics", "bench.costs", "bench.gate.decisions")
IMPURE = ("glob", "io", "mmap", "os", "pathlib", "random", "secrets", "shutil", "subprocess", "tempfile", "time")
"""Modules that a pure room does not import: no clock, no files, no chance."""

ENGINE_LIBRARIES: dict[str, tuple[str, ...]] = {
    "": (),
    "errors": (),
    "kernels": ("llvmlite", "numba", "numpy"),
    "display": (),
    "lazy_module": (),
    "spec": ("mmh3",),
    "codec": ("cramjam", "deflate", "isal", "numba", "numpy", "pyarrow", "pyroaring", "zstandard"),
    "expressions": ("numpy", "sqlglot"),
    "storage": ("botocore", "pyarrow", "yaml"),
    "runtime": ("opentelemetry", "prometheus_client", "rich"),
    "columnar": ("numpy", "pyarrow"),
    "formats": ("cramjam", "fastavro", "numba", "numpy", "pyarrow"),
    "file_indexes": ("numpy", "pyarrow"),
    "plan": ("numpy", "pyarrow"),
    "deletes": ("numpy", "pyarrow", "pyroaring"),
    "read": ("numpy", "pyarrow"),
    "write": ("numpy", "pyarrow"),
    "commit": ("numpy", "pyarrow"),
    "catalog": ("botocore", "sqlalchemy", "thriftpy2", "urllib3"),
    "operations": ("numpy", "pyarrow"),
    "inspect": ("numpy", "pyarrow"),
    "maintenance": ("numpy", "pyarrow"),
    "frames": ("pyarrow",),
    "scan": ("pandas", "pyarrow"),
    "table": ("pyarrow",),
    "opening": ("pyarrow",),
    "spark": ("numpy", "pyarrow", "pyspark", "xxhash"),
    "spark_source": ("numpy", "pyarrow", "pyspark"),
}

LIBRARY_HOMES: dict[str, tuple[str, ...]] = {
    "pyarrow.acero": ("engine/columnar/",),
    "pyarrow.compute": ("engine/columnar/", "engine/formats/", "bench/", "tests/"),
    "pyarrow.dataset": ("engine/columnar/", "engine/frames/", "bench/", "tests/"),
    "pyarrow.fs": (
        "engine/storage/arrow.py",
        "engine/storage/conditional_s3.py",
        "engine/storage/object_stores.py",
        "bench/",
        "tests/",
    ),
    "pyarrow.parquet": ("engine/formats/", "bench/", "tests/"),
    "pyspark": ("engine/spark/", "engine/spark_source/", "bench/", "tests/"),
    "polars": ("bench/engines/", "bench/processes/fresh_plan.py", "bench/processes/fresh_scan.py", "tests/"),
    "llvmlite": ("engine/kernels/machine_code.py", "tests/"),
    "duckdb": ("bench/engines/", "bench/workloads/dsdgen.py", "bench/cli/sql.py", "tests/"),
    "pyiceberg": ("bench/engines/", "bench/processes/fresh_plan.py", "bench/processes/fresh_scan.py", "tests/"),
}
"""Libraries and parts of libraries that only these places import or use."""

CLOCKS_AND_CHANCE = (
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "numpy.random.",
    "os.urandom",
    "random.",
    "secrets.",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.process_time",
    "time.sleep",
    "time.time",
    "time.time_ns",
    "uuid.uuid1",
    "uuid.uuid4",
)
"""Allowed as the default of a parameter or field, so that a caller can put another in its place; nowhere else."""

SEEDED = (
    "numpy.random.Generator",
    "numpy.random.PCG64",
    "numpy.random.Philox",
    "numpy.random.SeedSequence",
    "numpy.random.default_rng",
    "random.Random",
)
"""Chance that repeats, given a seed; bench may use it."""

FILES = (
    "builtins.open",
    "glob.",
    "io.FileIO",
    "io.open",
    "mmap.",
    "os.",
    "pathlib.Path",
    "pyarrow.OSFile",
    "pyarrow.memory_map",
    "shutil.",
    "tempfile.",
)
NOT_FILES = ("os.PathLike", "os.cpu_count", "os.fspath", "os.process_cpu_count", "os.sched_getaffinity")
FILE_HOMES = ("engine/storage/", "engine/kernels/machine_code.py")
"""In the engine, only these places touch files, so that tests can put faulty and counted storage beneath the rest; code
that is kept on this machine is no part of a table."""

TERMINAL = ("builtins.input", "builtins.print")

BANNED_FILE_NAMES = ("base", "common", "helper", "helpers", "manager", "misc", "shared", "util", "utils")

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_LINE_LENGTH = 120

"""What the rules let pass for now: (rule, subject) -> reason. It may only shrink; an entry that nothing needs fails."""

EXEMPTIONS: dict[tuple[str, str], str] = {
    (
        "files",
        "engine/codec/budget.py: os.environ",
    ): "A limit of the process, which decoders ask for in threads and in Spark's executors; no file is touched",
    (
        "files",
        "engine/catalog/sql_database.py: pathlib.Path",
    ): "SQLite opens its own file, in a directory that must exist",
    (
        "rooms",
        "bench/execution/measurement.py: bench.measurements",
    ): "The registry names the project's measurements as entry points do: imported when one is asked for",
}

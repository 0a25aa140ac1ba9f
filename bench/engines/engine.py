"""What an engine under test can do, and what of it is timed.

The timed regions are the same for every engine, so that their figures are comparable:

planning
    From an opened table to the complete list of data files (with their deletes and residuals) in memory.
    `Engine.open` comes before, untimed: it reads metadata.json and nothing below it. The first `plan` of a fresh handle
    is *cold*: no manifest of the table is in any cache of the process (`Forgetting`), though the operating system's
    page cache and the code are warm. A `plan` right after another of the same handle is *warm* and may use whatever
    the engine keeps by default.
    Parsing the filter's text is not included (engines hand their parsers very different machinery: Spark's analyzer
    takes tens of milliseconds), nor is converting the list to paths for comparison.
scanning
    To the last value of the requested columns delivered: Arrow engines iterate over record batches and drop each, Spark
    engines write to Spark's ``noop`` sink. Planning and the application of deletes are included. Nothing is counted or
    summed inside the timed region. A *cold* scan begins with the name of metadata.json, as a user's query does:
    `Engine.open` is timed, and nothing of the table is in any cache of the engine. A *warm* one begins with a handle
    that delivered the same rows just before.
maintenance
    From the name of a table to the last commit, and the last file deleted.
committing
    From descriptions of files in the form in which the engine takes them, and an open empty table, to a visible
    snapshot with them: manifests, manifest list and metadata written, the catalog's pointer moved.
writing
    From rows in memory, in the form in which the engine takes them, and an open empty table, to a snapshot with them;
    or, for engines that write no tables, to a Parquet file.
changing
    From rows in memory, in the same form, and an open table with data files, to a snapshot with the change: finding the
    rows that are replaced, and writing data and delete files, is included.
querying
    From the text of a query over open tables to the last row of its answer in the memory of this process: parsing,
    planning of the query and of every scan, and reading are included. Metadata files were read before. For concurrent
    *streams* of queries, from the first text to the last row of the last answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable
from urllib.parse import unquote, urlsplit

import icebench
from icebench.bench.layouts.actions import Action

if TYPE_CHECKING:  # without NumPy and Arrow, `icebench list` starts in half the time
    import pyarrow as pa

    from icebench.bench.engines.checksum import Checksum

MergeMode = Literal["copy-on-write", "merge-on-read"]
COMPRESSION_LEVEL = "write.parquet.compression-level"
Handle = TypeVar("Handle")
Filter = TypeVar("Filter")


class Ability(Enum):
    """What an engine can do."""

    PLAN = "planning"
    COUNT_PLAN = "planning that reports only the number of files"
    SCAN = "scanning"
    COMMIT = "committing files that are described"
    MAINTAIN = "maintenance of tables"
    WRITE = "writing rows"
    CHANGE = "changing rows"
    QUERY = "answering queries"
    CONCURRENT_QUERIES = "concurrent queries"


class EngineMissing(Exception):
    """The engine is not installed or cannot work here. It is reported as skipped, with this reason."""


class TookTooLong(Exception):
    """There was no answer within the given time, which is in the message."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"gave no answer within {seconds:g} s")
        self.seconds = seconds


class Plan:
    """A finished plan; it is read outside the timed region.

    Args:
        paths: Returns the paths of the planned data files, as the engine spells them.
        counters: Returns exact work counters of the planning; called once, after the clock has stopped.
    """

    def __init__(self, paths: Callable[[], Iterable[str]], counters: Callable[[], Mapping[str, int]]) -> None:
        self._paths = paths
        self._counters = counters

    @cached_property
    def files(self) -> frozenset[str]:
        """Normalised paths of the planned data files (see `normalised`)."""
        return frozenset(normalised(path) for path in self._paths())

    @cached_property
    def counters(self) -> Mapping[str, int]:
        """Work counters by name; at least ``files_planned`` and ``delete_files_planned``."""
        return dict(self._counters())


class Engine(Protocol[Handle, Filter]):
    """An engine under test. A handle is whatever `open` returns; it is used by one thread, for one table.

    Errors of the engine itself (its own exceptions) propagate unchanged; the harness records them as failures.
    """

    name: str
    version: str
    abilities: frozenset[Ability]

    def open(self, metadata_location: str) -> Handle:
        """A fresh handle of the table at that metadata.json, with nothing of the table cached in it but its metadata.
        Timed as part of a cold scan, but not with a plan."""
        ...

    def compile(self, handle: Handle, filter: str | None) -> Filter:
        """Parse a filter in SQL with the engine's own parser; None keeps all rows. The result serves every handle of
        the same metadata.json. Not timed."""
        ...

    def plan(self, handle: Handle, filter: Filter) -> Plan:
        """Plan a scan of all columns. Timed."""
        ...

    def scan(self, handle: Handle, columns: Sequence[str], filter: Filter) -> object:
        """Deliver every live row that the filter keeps, and drop it. Timed."""
        ...

    def checksum(self, handle: Handle, columns: Sequence[str], filter: Filter) -> Checksum:
        """The checksum of the rows that `scan` delivers, through the same reader. Not timed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFile:
    """What a table records about one of its data files; bounds in Iceberg's single-value serialization."""

    path: str
    record_count: int
    size_bytes: int
    partition: tuple[object, ...]
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]


class Committing(Protocol):
    """What an engine with `Ability.COMMIT` offers in addition."""

    name: str

    def take_files(self, files: Sequence[icebench.DataFile], metadata_location: str) -> Any:  # noqa: ANN401 - its own
        """The files of the table at that metadata.json, in the form in which the engine takes files from writers;
        `files` describes the same files. Not timed."""
        ...

    def new_table(self, metadata_location: str, folder: Path) -> Any:  # noqa: ANN401 - its own
        """An empty table of format version 2 below an empty folder, with the columns and partitions of the table at
        that metadata.json, ready to be committed to. Not timed."""
        ...

    def opened_again(self, table: Any) -> Any:  # noqa: ANN401 - its own
        """Another handle of the same table, as another writer has it. Not timed."""
        ...

    def commit_files(self, table: Any, files: Any) -> None:  # noqa: ANN401 - its own
        """Append all files in one snapshot without reading former ones (a fast append). Timed."""
        ...

    def location_of(self, table: Any) -> str:  # noqa: ANN401 - its own
        """The table's metadata.json as it is now."""
        ...


class Writing(Protocol):
    """What an engine with `Ability.WRITE` offers in addition."""

    name: str
    writes_tables: bool
    """Whether it writes Iceberg tables; else one Parquet file."""
    sorts_rows: bool
    """Whether it writes rows in the sort order that a table declares."""

    def take_rows(self, rows: pa.Table, kept: ExitStack) -> Any:  # noqa: ANN401 - its own
        """The rows in the engine's own in-memory form, valid until `kept` is closed. Not timed."""
        ...

    def new_target(self, metadata_location: str, folder: Path, level: int | None) -> Any:  # noqa: ANN401 - its own
        """An empty table below an empty folder, with the columns and partitions of the table at that metadata.json, and
        its sort order where the engine honours it; for an engine that writes no tables, where its file will be. `level`
        is the zstd level, by the engine's own setting; None is its default. Not timed."""
        ...

    def append_rows(self, target: Any, rows: Any) -> None:  # noqa: ANN401 - its own
        """Write all rows, in files as the engine makes them by default, compressed by zstd. Timed."""
        ...

    def written_to(self, target: Any) -> str:  # noqa: ANN401 - its own
        """The table's metadata.json as it is now, or the Parquet file."""
        ...


class Changing(Writing, Protocol):
    """What an engine with `Ability.CHANGE` offers in addition."""

    merge_modes: frozenset[MergeMode]
    """How it upserts: by the table property ``write.merge.mode``."""

    def open_target(self, warehouse: Path, name: str) -> Any:  # noqa: ANN401 - its own
        """A table in a directory catalog, ready to be changed. Not timed."""
        ...

    def upsert_rows(self, target: Any, rows: Any, key: Sequence[str]) -> None:  # noqa: ANN401 - its own
        """Replace the table's rows that have the key of a given row by that row, and add the others. Timed."""
        ...

    def overwrite_partition(self, target: Any, rows: Any, filter: str) -> None:  # noqa: ANN401 - its own
        """Replace all rows of the partition of the given rows; `filter` keeps exactly its rows. Timed."""
        ...


@dataclass(frozen=True, kw_only=True)
class ParquetTarget:
    """The file of an engine that writes no tables, and the level of zstd; None is the engine's default."""

    path: Path
    level: int | None


class Maintaining(Protocol):
    """What an engine with `Ability.MAINTAIN` offers in addition."""

    name: str
    maintains: frozenset[Action]

    def maintain(self, warehouse: Path, name: str, action: Action, target_bytes: int) -> None:
        """Perform the action on a whole table in a directory catalog: rewrite its data files to a target size, by
        `icebench.bench.layouts.actions.KEYS`; rewrite its manifests by partition; expire all snapshots but the current
        one, with their files; delete orphan files older than three days. Timed, including opening the table."""
        ...


class Querying(Protocol):
    """What an engine with `Ability.QUERY` offers in addition."""

    name: str
    dialect: str
    """The dialect of its SQL: ``duckdb`` or ``spark``."""

    def open_tables(self, locations: Mapping[str, str]) -> Any:  # noqa: ANN401 - its own
        """The tables of these metadata files, by the names that queries use. Not timed.

        Raises:
            EngineMissing: The engine cannot open one of them.
        """
        ...

    def answer(
        self,
        tables: Any,  # noqa: ANN401 - its own
        query: str,
        names: Sequence[str],
        seconds: float | None = None,
    ) -> list[tuple[Any, ...]]:
        """The rows of a query's answer in their order; times with a zone keep it. Timed.

        Args:
            tables: The tables from `open_tables`.
            query: One query in the engine's dialect.
            names: The tables that it reads.
            seconds: When to give up; None waits without limit.

        Raises:
            TookTooLong: There was no answer by then.
        """
        ...


class QueryingConcurrently(Querying, Protocol):
    """What an engine with `Ability.CONCURRENT_QUERIES` offers in addition."""

    def new_session(self, tables: Any) -> Any:  # noqa: ANN401 - its own
        """The tables of `open_tables` in a session of another user, for `answer` in another thread while other sessions
        answer. Not timed."""
        ...


@runtime_checkable
class Counting(Protocol):
    """An engine that can report exactly what a scan did."""

    def count_scan(self, handle: Any, columns: Sequence[str], filter: Any) -> Mapping[str, int]:  # noqa: ANN401 - its own
        """Scan as `Engine.scan` does, and return the work counters of planning, reading and storage. Not timed."""
        ...


@runtime_checkable
class Forgetting(Protocol):
    """An engine with caches of tables that outlive its handles, in the process or in its session."""

    def forget(self) -> None:
        """Empty those caches, so that the next scan or plan of a new handle is cold. Not timed."""
        ...


@runtime_checkable
class CachesOnDisk(Protocol):
    """An engine that can keep what it decodes of manifests on a local disk, for other processes."""

    def open_with_cache(self, metadata_location: str, directory: Path) -> Any:  # noqa: ANN401 - its own
        """As `Engine.open`; what the handle decodes of manifests is kept in `directory`, and found there."""
        ...


@runtime_checkable
class Quotable(Protocol):
    """An engine that can state its query in its own language."""

    def query(self, handle: Any, columns: Sequence[str] | None, filter: str | None) -> str:  # noqa: ANN401 - its own
        """What `Engine.scan` runs for these columns and this text of a filter, or `Engine.plan` if `columns` is None: a
        Python expression over `table`, or SQL that selects from ``TABLE``. Not run, not timed."""
        ...


class FilesReader(Protocol):
    """An engine that can return what a table records about its files."""

    name: str

    def committed(self, metadata_location: str) -> Iterable[CommittedFile]:
        """The data files of the table at that metadata.json, which any engine may have written, as this engine reads
        them. Not timed."""
        ...


AnyEngine = Engine[Any, Any]
"""An engine with handles and filters of any type."""


def normalised(location: str) -> str:
    """A location with local schemes taken away, so that ``file:/a``, ``file:///a`` and ``/a`` are one."""
    parts = urlsplit(location)
    if parts.scheme != "file":
        return location
    return unquote(parts.path) if "%" in parts.path else parts.path

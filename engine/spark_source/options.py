"""Options of ``format("icebench")``: the table, what of it to read, how to write it.

Names are those of Iceberg's own Spark source wherever it has one. Spark passes options in lower case, so names are
compared without case, table properties whose names have capitals cannot be given, and names of snapshot properties
(``snapshot-property.<name>``) lose their capitals. An unknown option is an error: a misspelt filter would otherwise
read, or overwrite, too many rows.

Spark shows options in its event log, plans and pages, except those whose *names* look like those of secrets. A secret
under another name is an error; ``catalog-secret.<name>`` is the catalog's property of that name, for any name. Spark
sends options to executors with the tasks alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from icebench.engine.catalog.addresses import is_name
from icebench.engine.errors import Invalid, Unsupported, is_secret, without_secrets
from icebench.engine.opening.load import load_catalog, load_table
from icebench.engine.spec.properties import DISTRIBUTION_MODE, TARGET_FILE_SIZE_BYTES
from icebench.engine.spec.snapshots import MAIN
from icebench.engine.storage.resolve import scheme_of
from icebench.engine.storage.user_configuration import configured_catalogs
from icebench.engine.table import Table

_PLACE = ("path", "catalog", "table", "warehouse", "catalog-name", "token", "credential")
_READ = ("columns", "filter", "snapshot-id", "branch", "tag", "as-of-timestamp", "start-snapshot-id", "end-snapshot-id",
         "split-size", "pushdown", "changelog", "net-changes", "compute-updates", "identifier-columns")  # fmt: skip
_STREAM = (
    "branch",
    "columns",
    "split-size",
    "starting-position",
    "stream-from-timestamp",
    "stream-from-snapshot-id",
    "streaming-skip-delete-snapshots",
    "streaming-skip-overwrite-snapshots",
    "streaming-max-files-per-micro-batch",
    "streaming-max-rows-per-micro-batch",
    "streaming-changelog",
    "compute-updates",
    "identifier-columns",
)
_APPENDS_ONLY = (
    "streaming-skip-delete-snapshots",
    "streaming-skip-overwrite-snapshots",
    "split-size",
    "streaming-max-files-per-micro-batch",
    "streaming-max-rows-per-micro-batch",
)
_WRITE = ("branch", "merge-schema", "overwrite-mode", "overwrite-filter", "distribution-mode", "target-file-size-bytes")
_OF_SPARK = ("checkpointlocation", "queryname")
"""What Spark itself puts among the options of a source or sink."""
_CATALOG_PROPERTY, _TABLE_PROPERTY, _SNAPSHOT_PROPERTY = "catalog.", "write.", "snapshot-property."
_CATALOG_SECRET = "catalog-secret."  # noqa: S105 - a prefix of names
_OF_CATALOG = (_CATALOG_PROPERTY, _CATALOG_SECRET)
_REDACTED = re.compile("secret|password|token|access[.]?key|credential", re.IGNORECASE)
"""Names of options that Spark does not show: its default for ``spark.redaction.regex``."""

OverwriteMode = Literal["static", "dynamic"]
Starting = Literal["earliest", "latest"]


@dataclass(frozen=True, kw_only=True)
class TablePlace:
    """The options that identify a table.

    Args:
        table: Its name in the catalog, or its location.
        catalog: The catalog's URI, as for `icebench.load_catalog`; None for a table opened by its location, read-only.
        warehouse: As for `icebench.load_catalog`, like the following.
        name: The catalog's name.
        token: As for `icebench.load_catalog`.
        credential: As for `icebench.load_catalog`.
        properties: As for `icebench.load_catalog`.
    """

    table: str
    catalog: str | None = field(default=None, repr=False)
    warehouse: str | None = None
    name: str | None = None
    token: str | None = field(default=None, repr=False)
    credential: str | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def load(self) -> Table:
        """Load the table at its current state.

        Raises:
            NotFound: No such table.
            Unsupported: The table is in the memory of one process, which executors cannot reach.
        """
        if self.catalog is None:
            table = load_table(self.table, properties=self.properties)
        else:
            catalog = load_catalog(
                self.catalog,
                warehouse=self.warehouse,
                name=self.name,
                token=self.token,
                credential=self.credential,
                properties=self.properties,
            )
            table = catalog.load_table(self.table)
        if scheme_of(table.location) == "memory":
            raise Unsupported(f"table {table.name} is at {table.location}, which Spark's executors can not reach")
        return table


@dataclass(frozen=True, kw_only=True)
class ChangelogOptions:
    """How changes are represented; see `Table.changelog_scan`.

    Args:
        net_changes: Leave out changes that later snapshots undo.
        compute_updates: Represent a delete and an insert of the same row as an update; by default, if identifier
            columns are given.
        identifier_columns: The columns that identify a row.
    """

    net_changes: bool = False
    compute_updates: bool | None = None
    identifier_columns: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a batch query reads; None where an option was not given.

    Args:
        place: The table.
        columns: Full names; metadata columns may be among them.
        filter: SQL-like text, for conditions that Spark does not push (such as ``or``).
        snapshot_id: A snapshot.
        ref: A branch or tag.
        ref_type: Whether `ref` must be a branch or a tag.
        as_of: A time: milliseconds since 1970, or ISO 8601 with a zone.
        after: Read what appends added after this snapshot.
        until: The last snapshot of that increment.
        split_bytes: Target size of a task; None uses the table's property.
        pushes: Let Spark push filters. On Spark 4.1 only for a DataFrame that one query uses once: the result of
            pushing is kept with the DataFrame, and a second query over it would read the rows of the first one's
            filter.
        changelog: Read row-level changes instead of rows.
    """

    place: TablePlace
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    snapshot_id: int | None = None
    ref: str | None = None
    ref_type: Literal["branch", "tag"] = "branch"
    as_of: int | str | None = None
    after: int | None = None
    until: int | None = None
    split_bytes: int | None = None
    pushes: bool = False
    changelog: ChangelogOptions | None = None


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """What a streaming query reads.

    Args:
        place: The table.
        columns: Full names.
        branch: The branch to follow.
        starting: Where a new query begins, if neither `from_timestamp_ms` nor `after` is given.
        from_timestamp_ms: Begin with the first snapshot at or after this time.
        after: Begin after this snapshot.
        skips_deletes: Skip snapshots that only delete rows, instead of failing.
        skips_overwrites: Skip snapshots that overwrite rows, instead of failing.
        most_files: Most files of a micro-batch; at least one.
        most_rows: Most rows of a micro-batch, in whole files; at least one file.
        split_bytes: Target size of a task; None uses the table's property.
        changelog: Read row-level changes instead of appended rows.
    """

    place: TablePlace
    columns: tuple[str, ...] | None = None
    branch: str = MAIN
    starting: Starting = "earliest"
    from_timestamp_ms: int | None = None
    after: int | None = None
    skips_deletes: bool = False
    skips_overwrites: bool = False
    most_files: int | None = None
    most_rows: int | None = None
    split_bytes: int | None = None
    changelog: ChangelogOptions | None = None


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """How rows are written.

    Args:
        place: The table.
        branch: The branch to write to.
        merges_schema: Add columns that the table does not have.
        overwrite_mode: What ``mode("overwrite")`` replaces: all rows (or those of the filter), or the partitions of the
            new rows.
        overwrite_filter: The rows that a static overwrite replaces.
        properties: Table properties for this write.
        snapshot_properties: Entries for the snapshot summary.
    """

    place: TablePlace
    branch: str = MAIN
    merges_schema: bool = False
    overwrite_mode: OverwriteMode = "static"
    overwrite_filter: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a batch query.

    Raises:
        Invalid: An unknown option or value.
    """
    given = _Given(options, (*_PLACE, *_READ), _OF_CATALOG)
    branch, tag = given.text("branch"), given.text("tag")
    states = {name for name in ("snapshot-id", "branch", "tag", "as-of-timestamp") if given.text(name) is not None}
    if len(states) > 1:
        raise Invalid(f"options {', '.join(sorted(states))} ask for different states of the table; give one")
    increment = {name for name in ("start-snapshot-id", "end-snapshot-id") if given.text(name) is not None}
    if increment and states:
        raise Invalid(f"options {', '.join(sorted(increment | states))}: an increment has no state of its own")
    changelog = given.changelog("changelog")
    if changelog is not None and (states or given.flag("pushdown")):
        raise Invalid(f"options changelog, {', '.join(sorted(states)) or 'pushdown'}: a changelog has neither")
    if increment == {"end-snapshot-id"} and changelog is None:
        raise Invalid("option end-snapshot-id ends an increment; give start-snapshot-id, or snapshot-id for a state")
    as_of = given.text("as-of-timestamp")
    return ReadOptions(
        place=given.place(),
        columns=given.names("columns"),
        filter=given.text("filter"),
        snapshot_id=given.number("snapshot-id"),
        ref=branch if branch is not None else tag,
        ref_type="branch" if tag is None else "tag",
        as_of=int(as_of) if as_of is not None and as_of.isdecimal() else as_of,
        after=given.number("start-snapshot-id"),
        until=given.number("end-snapshot-id"),
        split_bytes=given.positive("split-size"),
        pushes=given.flag("pushdown"),
        changelog=changelog,
    )


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Parse the options of a streaming query.

    Raises:
        Invalid: An unknown option or value.
    """
    given = _Given(options, (*_PLACE, *_STREAM), _OF_CATALOG)
    starts = [n for n in ("starting-position", "stream-from-timestamp", "stream-from-snapshot-id") if given.text(n)]
    if len(starts) > 1:
        raise Invalid(f"options {', '.join(starts)} each say where the stream begins; give one")
    changelog = given.changelog("streaming-changelog")
    if changelog is not None:
        for name in _APPENDS_ONLY:
            if given.text(name) is not None:
                raise Invalid(f"option {name} is for a stream of what is appended; a changelog has whole snapshots")
    return StreamOptions(
        place=given.place(),
        columns=given.names("columns"),
        branch=given.text("branch") or MAIN,
        starting="latest" if given.one_of("starting-position", ("earliest", "latest")) == "latest" else "earliest",
        from_timestamp_ms=given.number("stream-from-timestamp"),
        after=given.number("stream-from-snapshot-id"),
        skips_deletes=given.flag("streaming-skip-delete-snapshots"),
        skips_overwrites=given.flag("streaming-skip-overwrite-snapshots"),
        most_files=given.positive("streaming-max-files-per-micro-batch"),
        most_rows=given.positive("streaming-max-rows-per-micro-batch"),
        split_bytes=given.positive("split-size"),
        changelog=changelog,
    )


def is_stream(options: Mapping[str, str]) -> bool:
    """Whether one of the options is for streams only: Spark asks for the schema without saying what it is for."""
    own = set(_STREAM) - set(_READ)
    return any(name.lower() in own for name in options)


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write, batch or streaming.

    Raises:
        Invalid: An unknown option or value, or a table that is given without its catalog.
        Unsupported: A distribution mode, which Spark's Python sources cannot request.
    """
    given = _Given(options, (*_PLACE, *_WRITE), (*_OF_CATALOG, _TABLE_PROPERTY, _SNAPSHOT_PROPERTY))
    place = given.place()
    if place.catalog is None:
        raise Invalid("writing needs option catalog: a table that is opened by its location is read-only")
    properties = given.properties(_TABLE_PROPERTY, keep_prefix=True)
    if (size := given.positive("target-file-size-bytes")) is not None:
        properties[TARGET_FILE_SIZE_BYTES.name] = str(size)
    if (mode := given.text("distribution-mode")) is not None:
        properties[DISTRIBUTION_MODE.name] = mode
    overwrite_mode = given.one_of("overwrite-mode", ("static", "dynamic"))
    overwrite_filter = given.text("overwrite-filter")
    if overwrite_mode == "dynamic" and overwrite_filter is not None:
        raise Invalid("options overwrite-filter and overwrite-mode=dynamic say different things of what is replaced")
    return WriteOptions(
        place=place,
        branch=given.text("branch") or MAIN,
        merges_schema=given.flag("merge-schema"),
        overwrite_mode="dynamic" if overwrite_mode == "dynamic" else "static",
        overwrite_filter=overwrite_filter,
        properties=properties,
        snapshot_properties=given.properties(_SNAPSHOT_PROPERTY),
    )


def refuse_distribution(properties: Mapping[str, str]) -> None:
    """Raise Unsupported where table and options ask for a distribution of rows, which Spark supports for Java sources
    only."""
    mode = DISTRIBUTION_MODE.of(properties)
    if mode != "none":
        raise Unsupported(
            f"{DISTRIBUTION_MODE.name}={mode}: Spark lets no Python data source distribute rows; write with "
            "table.append(df), or repartition the DataFrame and set the option distribution-mode=none"
        )


class _Given:
    """The options as Spark passed them; an unknown one is an error."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...], prefixes: tuple[str, ...]) -> None:
        self._options = {name.lower(): text for name, text in options.items()}
        for name, text in self._options.items():
            _refuse_shown_secret(name, text)
        for name in self._options:
            if name not in known and name not in _OF_SPARK and not name.startswith(prefixes):
                raise Invalid(f"no option {name!r} here; there are {', '.join(sorted({*known}))}")

    def text(self, name: str) -> str | None:
        return self._options.get(name)

    def number(self, name: str) -> int | None:
        text = self._options.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise Invalid(f"option {name}={text!r} is no whole number") from None

    def positive(self, name: str) -> int | None:
        number = self.number(name)
        if number is not None and number <= 0:
            raise Invalid(f"option {name}={number} is not positive")
        return number

    def flag(self, name: str) -> bool:
        return self.one_of(name, ("true", "false")) == "true"

    def one_of(self, name: str, values: tuple[str, ...]) -> str | None:
        text = self._options.get(name)
        if text is not None and text.lower() not in values:
            raise Invalid(f"option {name}={text!r} is none of {', '.join(values)}")
        return None if text is None else text.lower()

    def changelog(self, name: str) -> ChangelogOptions | None:
        """How changes are represented, if the option `name` asks for a changelog."""
        own = ("net-changes", "compute-updates", "identifier-columns")
        if not self.flag(name):
            for other in own:
                if self.text(other) is not None:
                    raise Invalid(f"option {other} is for a changelog; give option {name}=true")
            return None
        return ChangelogOptions(
            net_changes=self.flag("net-changes"),
            compute_updates=None if self.text("compute-updates") is None else self.flag("compute-updates"),
            identifier_columns=self.names("identifier-columns"),
        )

    def names(self, name: str) -> tuple[str, ...] | None:
        """Names separated by commas, or a JSON list for names that contain commas."""
        text = self._options.get(name)
        if text is None:
            return None
        if not text.lstrip().startswith("["):
            return tuple(part.strip() for part in text.split(",") if part.strip())
        try:
            found = json.loads(text)
        except ValueError as error:
            raise Invalid(f"option {name}={text!r} is no JSON list: {error}") from None
        if not all(isinstance(each, str) for each in found):
            raise Invalid(f"option {name}={text!r} is no list of names")
        return tuple(found)

    def properties(self, prefix: str, *, keep_prefix: bool = False) -> dict[str, str]:
        found = {name: text for name, text in self._options.items() if name.startswith(prefix)}
        return found if keep_prefix else {name.removeprefix(prefix): text for name, text in found.items()}

    def place(self) -> TablePlace:
        path, table, catalog = self.text("path"), self.text("table"), self.text("catalog")
        if (path is None) == (table is None):
            raise Invalid("give the table once: as the path, or as option table")
        if catalog is None and table is not None:
            raise Invalid("option table is a name in a catalog; give option catalog, or the table's location as path")
        if catalog is None:
            for name in ("warehouse", "catalog-name", "token", "credential"):
                if self.text(name) is not None:
                    raise Invalid(f"option {name} belongs to a catalog; give option catalog")
        return TablePlace(
            table=path or table or "",
            catalog=catalog,
            warehouse=self.text("warehouse"),
            name=self.text("catalog-name"),
            token=self.text("token"),
            credential=self.text("credential"),
            properties=self._catalog_properties(catalog),
        )

    def _catalog_properties(self, catalog: str | None) -> dict[str, str]:
        """The catalog's properties, with those of its configuration, which executors need not have."""
        shown, hidden = self.properties(_CATALOG_PROPERTY), self.properties(_CATALOG_SECRET)
        if twice := sorted(shown.keys() & hidden.keys()):
            raise Invalid(f"options catalog.{twice[0]} and catalog-secret.{twice[0]} are the same property; give one")
        configured = configured_catalogs().get(catalog.lower(), {}) if catalog is not None and is_name(catalog) else {}
        return configured | shown | hidden


def _refuse_shown_secret(name: str, text: str) -> None:
    """Raise Invalid for a secret in an option that Spark shows."""
    if _REDACTED.search(name) or not (name in _PLACE or name.startswith(_CATALOG_PROPERTY)):
        return
    if name == "catalog" and without_secrets(text) != text:
        raise Invalid(
            "option catalog has a password, which Spark shows in its event log, plans and pages: give a name of your "
            "own as option catalog and the address as option catalog-secret.uri, or configure the name on the driver, "
            "in .pyiceberg.yaml or as PYICEBERG_CATALOG__NAME__URI"
        )
    own = name.removeprefix(_CATALOG_PROPERTY)
    if is_secret(own) or without_secrets(text) != text:
        hidden = f"give it as option {_CATALOG_SECRET}{own}" if own != name else "leave the password out"
        raise Invalid(f"option {name} has a secret, which Spark shows in its event log, plans and pages: {hidden}")

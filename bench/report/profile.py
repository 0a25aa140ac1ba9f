"""The profile of a table as a report: recommended actions, best first, then charts and tables."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import icebench
from icebench.bench.engines.sql_text import spark_name
from icebench.bench.report.charts import Bar, BarChart, BarPanel, DotChart, DotPanel, DotRow, Point, Share
from icebench.bench.report.model import Cell, Fact, Finding, Report, Section, Table, plain
from icebench.bench.report.quantities import count, digits, quantity

NOTHING: Mapping[str, float] = MappingProxyType({})
_ASKED = ("filtered by",)
_DAY_MS = 24 * 60 * 60 * 1000
_DRAWN_COLUMNS = 20
_TABLE, _WITHIN = "whole table", "within partitions"


@dataclass(frozen=True, kw_only=True)
class Place:
    """How commands name the table.

    Args:
        table: Its name in the catalog; ``TABLE`` if it was opened by a file of an unknown catalog.
        spark_catalog: The catalog in Spark, where it has a name; None for an address.
        words: The arguments that name it in every command.
        opened: Those that it was opened by, where a command that changes the table needs others.
    """

    table: str = "TABLE"
    spark_catalog: str | None = None
    words: tuple[str, ...] = ("CATALOG", "TABLE")
    opened: tuple[str, ...] = ()

    @property
    def reading(self) -> tuple[str, ...]:
        """The arguments that name it in a command that changes nothing."""
        return self.opened or self.words

    @property
    def procedures(self) -> str:
        """Where Spark has its procedures: in the catalog of that name, or in the current one."""
        return "system" if self.spark_catalog is None else f"{self.spark_catalog}.system"


@dataclass(frozen=True, kw_only=True)
class Fix:
    """The commands that fix a reason: with icebench, empty if it has none, and in Spark SQL for Iceberg Java."""

    command: str
    sql: str


def fix_commands(profile: icebench.TableProfile, place: Place) -> tuple[Fix, ...]:
    """The commands for each reason, in order."""
    return tuple(
        Fix(
            command=_command(each.action, dict(each.arguments), place),
            sql=spark_sql(each.action, dict(each.arguments), place),
        )
        for each in profile.reasons
    )


_Arguments = dict[str, str | int | bool | tuple[str, ...]]
_OPTIONS = {
    "delete_file_threshold": "--delete-file-threshold",
    "remove_dangling_deletes": "--remove-dangling-deletes",
    "rewrite_all": "--rewrite-all",
}


def _command(action: str, arguments: _Arguments, place: Place) -> str:
    if action in ("set_properties", "drop_partition_field"):
        return ""
    words = ["icebench", "maintain", action.replace("_", "-"), *place.words]
    for name, value in arguments.items():
        if name == "strategy":
            words.append(f"--{value}")
        elif name == "use_starting_sequence_number":
            words.append("--new-sequence-number")
        else:
            words += [_OPTIONS[name]] if value is True else [_OPTIONS[name], str(value)]
    if action in ("expire_snapshots", "remove_orphan_files"):
        words.append("--delete")
    return shlex.join(words)


def spark_sql(action: str, arguments: _Arguments, place: Place) -> str:
    """The statement for Iceberg Java's Spark procedures that does what an action does."""
    table = spark_name(place.table)
    if action == "set_properties":
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in arguments.items())
        return f"ALTER TABLE {table} SET TBLPROPERTIES ({properties})"
    if action == "drop_partition_field":
        return f"ALTER TABLE {table} DROP PARTITION FIELD {spark_name(str(arguments['field']))}"
    given = dict(arguments)
    strategy = given.pop("strategy", None)
    parts = [f"table => '{table}'"] + ([] if strategy is None else [f"strategy => '{strategy}'"])
    options = [f"'{name.replace('_', '-')}', '{str(value).lower()}'" for name, value in given.items()]
    if options:
        parts.append(f"options => map({', '.join(options)})")
    return f"CALL {place.procedures}.{action}({', '.join(parts)})"


def profile_report(
    profile: icebench.TableProfile,
    place: Place,
    filtered: Mapping[str, float] = NOTHING,
    not_understood: Sequence[str] = (),
) -> Report:
    """The report of a profile.

    Args:
        profile: Which.
        place: Where the table is.
        filtered: The share of queries that filter by a column or partition field.
        not_understood: Queries that are not in these shares, each with the reason.
    """
    when = dt.datetime.fromtimestamp(profile.profiled_at_ms / 1000, dt.UTC)
    return Report(
        title=f"Profile of {profile.name}",
        subtitle=headline(profile),
        source=f"{profile.name} at {when:%Y-%m-%d %H:%M} UTC",
        findings=(
            *(Finding(statement=f"Not understood, and not counted: {each}.") for each in not_understood),
            *_findings(profile, place),
        ),
        remarks=(),
        sections=tuple(_sections(profile, filtered)),
        facts=tuple(_facts(profile)),
        facts_title="The table",
        reproduce=(shlex.join(["icebench", "profile", *place.reading]),),
    )


def headline(profile: icebench.TableProfile) -> str:
    """The table in a line."""
    deletes = sum(kind.files for kind in profile.deletes.kinds)
    parts = [
        count(profile.files.files, "data file"),
        quantity(profile.files.size_bytes, "bytes"),
        count(profile.files.records, "row"),
        count(deletes, "delete file"),
        "unpartitioned" if profile.partitions is None else count(profile.partitions.partitions, "partition"),
        count(profile.manifests.data_manifests + profile.manifests.delete_manifests, "manifest"),
        count(profile.history.snapshots, "snapshot"),
    ]
    return ", ".join(parts)


def _findings(profile: icebench.TableProfile, place: Place) -> Iterator[Finding]:
    for reason, fix in zip(profile.reasons, fix_commands(profile, place), strict=True):
        command = f"{fix.command}; in Spark: {fix.sql}" if fix.command else f"In Spark: {fix.sql}"
        statement = f"{reason.statement[:1].upper()}{reason.statement[1:]}"
        yield Finding(
            statement=f"{statement}: costs {quantity(reason.cost_bytes, 'bytes')}.",
            evidence=f"Gain: {reason.gain}. {command}. Estimated from {reason.estimate}.",
        )
    if not profile.reasons:
        yield Finding(statement="Nothing costs more than a hundredth of a read of the table.")


def _facts(profile: icebench.TableProfile) -> Iterator[Fact]:
    history = profile.history
    yield Fact("Location", profile.location)
    yield Fact("Metadata file", f"{profile.metadata_location}, {quantity(history.metadata_bytes, 'bytes')}")
    yield Fact("Format version", str(profile.format_version))
    yield Fact("Snapshot", "none" if profile.snapshot_id is None else str(profile.snapshot_id))
    refs = f"{count(history.branches, 'branch', 'branches')}, {count(history.tags, 'tag')}"
    yield Fact("Snapshots", f"{history.snapshots:,}, {refs}; the oldest is {age(history.oldest_age_ms)} old")
    expirable = count(history.expirable_snapshots, "snapshot")
    yield Fact("Expirable", f"{expirable}, about {quantity(history.expirable_bytes, 'bytes')}")
    yield Fact("Only in history", f"about {quantity(history.retained_bytes, 'bytes')}")
    forgotten = f"{history.forgotten_metadata_files:,} forgotten"
    yield Fact("Former metadata files", f"{history.metadata_log_files:,} in the log, {forgotten}")
    ages = profile.ages
    known = f"{age(ages.ages_ms.median)} (median), {age(ages.ages_ms.most)} at most"
    yield Fact("Age of data files", f"{known}, {ages.unknown_files:,} unknown")


def age(milliseconds: int) -> str:
    """``3.2 days``, in the largest unit of which there is one."""
    for size, unit in ((_DAY_MS, "days"), (_DAY_MS // 24, "hours"), (60_000, "minutes")):
        if milliseconds >= size:
            return f"{digits(milliseconds / size)} {unit}"
    return f"{digits(milliseconds / 1000)} s"


def _sections(profile: icebench.TableProfile, filtered: Mapping[str, float]) -> Iterator[Section]:
    yield _files(profile)
    if any(kind.files for kind in profile.deletes.kinds):
        yield _deletes(profile)
    if profile.partitions is not None:
        yield _partitions(profile)
    yield _manifests(profile, filtered)
    if any(column.table is not None for column in profile.columns):
        yield _overlap(profile)
    if any(column.statistics_bytes for column in profile.columns):
        yield _statistics(profile, filtered)
    if profile.footers is not None:
        yield _footers(profile)


def bins(lower: Sequence[int], unit: str) -> list[str]:
    """The ranges of a histogram."""
    ends = [quantity(low, unit) for low in lower]
    return [f"{low} to {high}" for low, high in pairwise(ends)] + [f"from {low}" for low in ends[-1:]]


def _files(profile: icebench.TableProfile) -> Section:
    files, groups = profile.files, profile.row_groups
    panels = []
    for title, found in (("Data files", files.histogram), ("Delete files", profile.deletes.histogram)):
        shown = zip(bins(found.lower, "bytes"), found.files, found.size_bytes, strict=True)
        bars = [
            Bar(label=label, shares=(Share(kind="files", value=number),), note=quantity(size, "bytes"))
            for label, number, size in shown
        ]
        panels += [BarPanel(title=title, bars=tuple(bars))] if bars else []
    charts = (BarChart(caption="Files by size.", axis="files", kinds=("files",), panels=tuple(panels)),)
    compaction = f"{files.compaction_files:,} files, {quantity(files.compaction_bytes, 'bytes')}"
    stored = f"{groups.row_groups:,} of {quantity(groups.average_bytes, 'bytes')}"
    rows = [
        ("Size of a data file", _spread(files.sizes.least, files.sizes.median, files.sizes.p95, files.sizes.most)),
        ("Small files", f"{files.small_files:,} below {quantity(files.smallest_bytes, 'bytes')}"),
        ("Large files", f"{files.large_files:,} above {quantity(files.largest_bytes, 'bytes')}"),
        ("Compaction", f"{compaction}, would become about {files.compaction_result_files:,}"),
        ("Row groups", f"{stored}, at most {groups.row_groups_of_file.most:,} in a file"),
        ("Row groups unknown", f"{groups.unknown_files:,} files"),
    ]
    for each in profile.sort_orders:
        claim = "No sort order" if each.order_id is None else f"Sort order {each.order_id}"
        default = " (default)" if each.is_default else ""
        rows.append((f"{claim} claimed", f"{each.files:,} files: {each.order or 'unsorted'}{default}"))
    if profile.order is not None:
        rows.append(("Kept", f"{profile.order.unsorted_files:,} of {profile.order.read_files:,} files read are not"))
    return Section(
        key="files",
        title="Files",
        explanation="Data files and delete files by size, by their manifest entries. Small and large are as compaction "
        "with default options takes them.",
        charts=charts if panels else (),
        tables=(_pairs("Data files", rows),),
    )


def _spread(least: int, median: int, p95: int, most: int) -> str:
    named = (("least", least), ("median", median), ("95 %", p95), ("most", most))
    return ", ".join(f"{name} {quantity(value, 'bytes')}" for name, value in named)


def _pairs(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    return Table(title=title, columns=("", ""), rows=tuple((plain(name), plain(text)) for name, text in rows))


def _figures(*values: str) -> tuple[Cell, ...]:
    return tuple(Cell(text=value) for value in values)


def _deletes(profile: icebench.TableProfile) -> Section:
    deletes = profile.deletes
    names = ("position-delete files", "equality-delete files", "deletion vectors")
    rows = [
        (
            plain(name),
            *_figures(f"{k.files:,}", f"{k.records:,}", quantity(k.size_bytes, "bytes"), f"{k.dangling_files:,}"),
        )
        for name, k in zip(names, deletes.kinds, strict=True)
    ]
    return Section(
        key="deletes",
        title="Deletes",
        explanation=f"{deletes.data_files:,} of {profile.files.files:,} data files have deletes "
        f"({quantity(deletes.data_bytes, 'bytes')}), {deletes.most_on_a_file:,} delete files at most. "
        f"{deletes.deleted_records:,} rows are deleted by position. A dangling delete file applies to no data file.",
        tables=(Table(title="Delete files", columns=("", "files", "records", "bytes", "dangling"), rows=tuple(rows)),),
    )


def _partitions(profile: icebench.TableProfile) -> Section:
    found = profile.partitions
    assert found is not None
    rows = [
        (
            plain(each.path or "(none)"),
            *_figures(f"{each.files:,}", f"{each.records:,}", quantity(each.size_bytes, "bytes")),
        )
        for each in found.largest
    ]
    return Section(
        key="partitions",
        title="Partitions",
        explanation=f"{found.partitions:,} partitions of "
        f"{_spread(found.sizes.least, found.sizes.median, found.sizes.p95, found.sizes.most)}; "
        f"the largest has {digits(found.skew)} times the mean. {found.small_partitions:,} are smaller than a small "
        f"file. A partition has {found.files.median:,} files (median), {found.files.most:,} at most.",
        tables=(Table(title="Largest partitions", columns=("", "files", "rows", "bytes"), rows=tuple(rows)),),
    )


def _asked(name: str, filtered: Mapping[str, float]) -> tuple[str, ...]:
    return (quantity(filtered.get(name, 0.0), "share"),) if filtered else ()


def _manifests(profile: icebench.TableProfile, filtered: Mapping[str, float]) -> Section:
    found = profile.manifests
    rows = [
        (
            plain(each.name),
            *_figures(
                f"{each.values:,}",
                digits(each.opened),
                digits(each.holding),
                digits(each.possible),
                *_asked(each.name, filtered),
            ),
        )
        for each in found.clustering
    ]
    table = Table(
        title="Data manifests that a filter field = value opens",
        columns=("partition field", "values", "opened", "holding such a file", "possible", *_ASKED[: bool(filtered)]),
        rows=tuple(rows),
        note="Averages over values. Possible: with manifests of the target size, the files of a value together.",
    )
    return Section(
        key="manifests",
        title="Manifests",
        explanation=f"{found.data_manifests:,} data and {found.delete_manifests:,} delete manifests, "
        f"{quantity(found.size_bytes, 'bytes')}, median {quantity(found.sizes.median, 'bytes')}. "
        f"{found.live_entries:,} entries are live; {found.deleted_entries:,} are of removed files.",
        tables=(table,) if rows else (),
    )


def _overlap(profile: icebench.TableProfile) -> Section:
    compared = [column for column in profile.columns if column.table is not None and column.is_current]
    rows, dots = [], []
    for column in compared:
        table, within = column.table, column.within_partitions
        assert table is not None
        points = [Point(series=_TABLE, value=table.average_depth)]
        points += [] if within is None else [Point(series=_WITHIN, value=within.average_depth)]
        dots.append(DotRow(label=column.name, points=tuple(points)))
        inner = (
            ("", "", "")
            if within is None
            else (digits(within.average_depth), f"{within.most_depth:,}", digits(within.average_overlaps))
        )
        rows.append(
            (
                plain(column.name, column.type),
                *_figures(
                    digits(table.average_depth),
                    f"{table.most_depth:,}",
                    digits(table.average_overlaps),
                    *inner,
                    f"{table.constant_files:,}",
                    f"{column.files_without_bounds:,}",
                ),
            )
        )
    best = sorted(dots, key=lambda row: row.points[-1].value)[:_DRAWN_COLUMNS]
    series = (_TABLE, _WITHIN) if any(len(row.points) == 2 for row in best) else (_TABLE,)
    columns = (
        "column",
        "depth",
        "most",
        "overlaps",
        "depth in partitions",
        "most",
        "overlaps",
        "constant",
        "no bounds",
    )
    return Section(
        key="overlap",
        title="Overlap of files by column",
        explanation="The depth of a file is the most files, itself included, that cover one value of its range in that "
        "column; its overlaps are the other files with a value in common (as in Snowflake's clustering information). A "
        "filter on one value reads about as many files as the depth.",
        charts=(
            DotChart(
                caption=f"Average depth of the {len(best)} best clustered columns. Less is better; 1 is perfect.",
                axis="files that cover a value",
                log=True,
                series=series,
                panels=(DotPanel(title="Average depth", rows=tuple(best)),),
            ),
        ),
        tables=(Table(title="Depth and overlaps", columns=columns, rows=tuple(rows)),),
    )


def _statistics(profile: icebench.TableProfile, filtered: Mapping[str, float]) -> Section:
    ranked = sorted(profile.columns, key=lambda column: -column.statistics_bytes)
    total = sum(column.statistics_bytes for column in ranked)
    data = max(1, sum(column.data_bytes for column in ranked))
    rows = [
        (
            plain(c.name, "" if c.is_current else "dropped"),
            *_figures(
                quantity(c.statistics_bytes, "bytes"),
                quantity(c.statistics_bytes / max(1, total), "share"),
                quantity(c.bounds_bytes, "bytes"),
                quantity(c.data_bytes, "bytes"),
                quantity(c.data_bytes / data, "share"),
                f"{c.files_without_bounds:,}",
                f"{c.files_of_nulls:,}",
                "" if c.distinct_values is None else f"{c.distinct_values:,}",
                *_asked(c.name, filtered),
            ),
        )
        for c in ranked
    ]
    bars = [
        Bar(
            label=c.name,
            note=quantity(c.statistics_bytes, "bytes"),
            shares=(
                Share(kind="bounds", value=c.bounds_bytes / 1024),
                Share(kind="counts", value=(c.statistics_bytes - c.bounds_bytes) / 1024),
            ),
        )
        for c in ranked[:_DRAWN_COLUMNS]
    ]
    columns = (
        "column",
        "statistics",
        "share",
        "bounds",
        "data",
        "share",
        "files without bounds",
        "of nulls only",
        "distinct values",
        *_ASKED[: bool(filtered)],
    )
    return Section(
        key="statistics",
        title="Columns and their statistics",
        explanation=f"Statistics take {quantity(total, 'bytes')} of manifests before compression. Every plan decodes "
        "those of the columns that it filters; every commit writes all of them.",
        charts=(
            BarChart(
                caption="Bytes of statistics by column, before compression.",
                axis="KB",
                kinds=("bounds", "counts"),
                panels=(BarPanel(title="Most expensive columns", bars=tuple(bars)),),
            ),
        ),
        tables=(Table(title="All columns", columns=columns, rows=tuple(rows), folded=len(rows) > _DRAWN_COLUMNS),),
    )


def _footers(profile: icebench.TableProfile) -> Section:
    found = profile.footers
    assert found is not None
    rows = [
        (
            plain(each.name),
            *_figures(
                quantity(each.compressed_bytes, "bytes"),
                quantity(each.uncompressed_bytes, "bytes"),
                digits(each.uncompressed_bytes / max(1, each.compressed_bytes)),
                f"{each.pages:,}",
                ", ".join(sorted(each.codecs)),
                ", ".join(sorted(each.encodings)),
            ),
        )
        for each in found.columns
    ]
    columns = ("column", "compressed", "uncompressed", "ratio", "pages", "codecs", "encodings")
    wrong = [(plain(each.what), plain(each.file_path), plain(each.detail)) for each in found.contradictions]
    tables = [Table(title="Storage by column", columns=columns, rows=tuple(rows), folded=len(rows) > _DRAWN_COLUMNS)]
    if wrong:
        tables.append(Table(title="Files unlike their entries", columns=("what", "file", "found"), rows=tuple(wrong)))
    return Section(
        key="footers",
        title="What the files say",
        explanation=f"{found.files:,} files were opened: {found.row_groups:,} row groups, median "
        f"{quantity(found.row_group_bytes.median, 'bytes')} and {found.row_group_rows.median:,} rows; {found.pages:,} "
        f"pages, as far as footers count them. {found.contradicting_files:,} files are not as their entries say.",
        tables=tuple(tables),
    )

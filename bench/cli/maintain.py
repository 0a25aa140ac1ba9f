"""`icebench maintain`: a table's maintenance from the command line.

Commands that expire snapshots or delete files default to a dry run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any, TextIO

import click
from rich import box
from rich.table import Table as Grid

import icebench
from icebench.bench.advise.columns import ColumnUse, apply_proposals, examine_columns
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.moments import Moment
from icebench.bench.cli.naming import open_table, table_argument, table_options
from icebench.bench.cli.progress import RunProgress
from icebench.bench.cli.terminal import write_text
from icebench.bench.maintenance.passes import Decision, run_pass
from icebench.bench.maintenance.policy import Policy
from icebench.bench.report.quantities import digits, quantity
from icebench.bench.report.wrapping import Hanging

Command = Callable[..., Any]
_SHOWN_LOCATIONS = 20
_LABEL = 32
_UNLIMITED = 1000


class _Commands(click.Group):
    """Lists its commands with their whole first sentences."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(_UNLIMITED)) for name in self.commands])


@click.group("maintain", cls=_Commands)
def maintain() -> None:
    """Maintain a table: compact its files, expire snapshots, remove orphan files.

    CATALOG is what holds the table: a warehouse directory, an SQL database, the address of a REST catalog or a name of
    .pyiceberg.yaml. NAMESPACE.TABLE is its name there, such as db.events. PLACE is the directory of a table in a
    warehouse directory.
    """


def _of_table(command: Command, *, or_place: bool = False) -> Command:
    """The arguments and options that name a table, or its place where nothing is committed; it is opened for the
    command."""

    @wraps(command)
    def opened(*, names: tuple[str, ...], catalog: str | None, warehouse: str | None, **options: Any) -> int:  # noqa: ANN401 - of click
        table, _ = open_table(names, catalog, warehouse, commits=not or_place)
        return int(command(table=table, **options))

    return table_options(table_argument("names")(opened))


@maintain.command("rewrite-data-files")
@_of_table
@click.option("--sort-by", metavar="NAME", multiple=True, help="Sort the rows by this column. Repeatable.")
@click.option("--zorder-by", metavar="NAME", multiple=True, help="Arrange rows along a Z-curve. Repeatable.")
@click.option("--hilbert-by", metavar="NAME", multiple=True, help="Arrange rows along a Hilbert curve. Repeatable.")
@click.option("--where", metavar="SQL", help="Only files that may hold such rows.")
@click.option("--branch", default="main", show_default=True, help="Where.")
@click.option("--target-file-size-bytes", type=click.IntRange(min=1), help="The table's own by default.")
@click.option("--min-input-files", type=click.IntRange(min=1), help="Fewer files than this are left; 5 by default.")
@click.option("--rewrite-all", is_flag=True, help="Also files that are of a good size.")
@click.option("--sort", "sorting", is_flag=True, help="Sort the rows by the table's own sort order.")
@click.option("--delete-file-threshold", type=click.IntRange(min=1), help="Also files with that many delete files.")
@click.option("--remove-dangling-deletes", is_flag=True, help="Remove delete files that concern no data file any more.")
@click.option("--new-sequence-number", is_flag=True, help="New files are newer than deletes of the files they replace.")
@pass_context
def rewrite_data_files(
    context: Context,
    *,
    table: icebench.Table,
    sort_by: tuple[str, ...],
    zorder_by: tuple[str, ...],
    hilbert_by: tuple[str, ...],
    where: str | None,
    branch: str,
    target_file_size_bytes: int | None,
    min_input_files: int | None,
    rewrite_all: bool,
    sorting: bool,
    delete_file_threshold: int | None,
    remove_dangling_deletes: bool,
    new_sequence_number: bool,
) -> int:
    """Put small files together and apply deletes; sort rows or arrange them, if asked for."""
    if sum(map(bool, (sorting, sort_by, zorder_by, hilbert_by))) > 1:
        ways = "--sort, --sort-by, --zorder-by and --hilbert-by"
        raise click.UsageError(f"rows are arranged in one way: give one of {ways}")
    options: dict[str, Any] = {
        "target_file_size_bytes": target_file_size_bytes,
        "min_input_files": min_input_files,
        "rewrite_all": rewrite_all,
        "delete_file_threshold": delete_file_threshold,
        "remove_dangling_deletes": remove_dangling_deletes,
        "use_starting_sequence_number": not new_sequence_number,
    }
    with RunProgress(context.terminal.err) as shown:
        done = table.maintenance.rewrite_data_files(
            "sort" if sorting or sort_by else "zorder" if zorder_by else "hilbert" if hilbert_by else "binpack",
            sort_order=list(sort_by) or None,
            zorder_by=zorder_by,
            hilbert_by=hilbert_by,
            where=where,
            branch=branch,
            progress=lambda at: shown("rewrite", f"{at.size_bytes:,} bytes", at.groups, at.groups_total),
            **{key: value for key, value in options.items() if value is not None},
        )
    _print_result(context, done)
    for group in done.failed:
        failed = f"{len(group.file_paths)} files: {group.error}"
        context.terminal.err.print(Hanging("not rewritten: ", failed), crop=False)
    if done.dangling_error is not None:
        context.terminal.err.print(Hanging("no dangling delete was removed: ", str(done.dangling_error)), crop=False)
    return 1 if done.failed or done.dangling_error is not None else 0


@maintain.command("cluster")
@_of_table
@click.option("--strategy", type=click.Choice(["sort", "zorder", "hilbert"]), help="Declare it in the table first.")
@click.option("--key", "keys", metavar="NAME", multiple=True, help="Declare this column as a key first. Repeatable.")
@click.option("--max-bytes", type=click.IntRange(min=1), help="Rewrite at most that many bytes of data files.")
@click.option("--branch", default="main", show_default=True, help="Where.")
@click.option("--dry-run", is_flag=True, help="Only show what would be merged; nothing is declared, either.")
@pass_context
def cluster(
    context: Context,
    *,
    table: icebench.Table,
    strategy: str | None,
    keys: tuple[str, ...],
    max_bytes: int | None,
    branch: str,
    dry_run: bool,
) -> int:
    """Merge the files that overlap too much in the keys by which the table declares to be clustered.

    A pass rewrites what is due and no more, and rewrites a row a logarithmic number of times however the table grows.
    """
    declared = {"strategy": strategy, "keys": ", ".join(keys)}
    changes = {f"icebench.clustering.{key}": value for key, value in declared.items() if value}
    if changes and dry_run:
        raise click.UsageError("--strategy and --key change the table's properties: --dry-run allows neither")
    if changes:
        table.maintenance.check_clustering(changes)
        table.set_properties(changes)
    with RunProgress(context.terminal.err) as shown:
        done = table.maintenance.cluster(
            max_bytes=max_bytes,
            dry_run=dry_run,
            branch=branch,
            progress=lambda at: shown("cluster", f"{at.size_bytes:,} bytes", at.groups, at.groups_total),
        )
    _print_result(context, done)
    return 0


@maintain.command("run")
@_of_table
@click.option("--policy", "path", type=click.Path(path_type=Path), help="A TOML file; the project's own by default.")
@click.option("--execute", is_flag=True, help="Do it: without this the plan is only printed.")
@click.option(
    "--log", type=click.File("a", "utf-8"), metavar="FILE", help="Add each decision to this file, as a line of JSON."
)
@pass_context
def run(
    context: Context,
    *,
    table: icebench.Table,
    path: Path | None,
    execute: bool,
    log: TextIO | None,
) -> int:
    """Do what is due, by a policy: the most gain per byte first, within its budget of bytes, seconds and dollars.

    What is due follows from the table's profile. Nothing is kept between passes: one that was interrupted is finished
    by the next.
    """
    policy = Policy.load(path)
    decisions = []
    for each in run_pass(table, policy, execute=execute):
        decisions.append(each)
        _line(context, f"{each.decision:<8}{each.action}", each.why)
        if each.gain_bytes or each.work_bytes:
            takes = f"{quantity(each.seconds, 's')}, {digits(each.dollars)} $"
            moves = f"moves {quantity(each.work_bytes, 'bytes')}, {takes}"
            _line(context, "", f"{each.worth}; {moves}" if each.worth else moves)
        if log is not None:
            _append_to_log(log, table.name, each)
    if not execute and any(each.decision == "do" for each in decisions):
        context.terminal.err.print("nothing was changed; --execute does it")
    return int(any(each.decision == "failed" for each in decisions))


@maintain.command("columns")
@_of_table
@click.option("--queries", type=click.Path(path_type=Path), metavar="FILE", help="The queries: SQL or a log.")
@click.option("--scans", type=click.Path(path_type=Path), metavar="FILE", help="A log of scan reports, a line each.")
@click.option("--used", metavar="NAME", multiple=True, help="A column that filters use. Repeatable.")
@click.option("--deep", is_flag=True, help="Open all data files for the bytes of columns.")
@click.option("--execute", is_flag=True, help="Change metrics modes and the order of columns; nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as one object, for other programs.")
@pass_context
def columns(
    context: Context,
    *,
    table: icebench.Table,
    queries: Path | None,
    scans: Path | None,
    used: tuple[str, ...],
    deep: bool,
    execute: bool,
    as_json: bool,
) -> int:
    """Show what each column costs and which ones queries use; propose metrics modes, order, and what to drop.

    Queries come from SQL, from scan reports, or as names of columns. Dropping a column is only proposed. A statement
    that is not understood may use any column: then no metrics mode and no drop is proposed, and the exit code is 1.
    """
    if bool(queries) + bool(scans) + bool(used) != 1:
        raise click.UsageError("say what queries use: one of --queries, --scans and --used")
    advice = examine_columns(table, queries=queries, scans=scans, used=used, deep=deep)
    if as_json:
        found = {
            "columns": [asdict(each) for each in advice.uses],
            "proposals": [asdict(each) for each in advice.proposals],
            "not_understood": [asdict(each) for each in advice.not_understood],
        }
        write_text(context.terminal.out, f"{json.dumps(found)}\n")
    else:
        context.terminal.out.print(_column_uses(advice.uses[:_SHOWN_LOCATIONS]), crop=False)
        for each in advice.proposals:
            saved = {"data": each.saved_data_bytes, "metrics": each.saved_statistics_bytes}
            sizes = " and ".join(f"{quantity(size, 'bytes')} of {what}" for what, size in saved.items() if size)
            _line(context, f"{each.change} {each.column}", each.why + (f"; saves up to {sizes}" if sizes else ""))
    err = context.terminal.err
    for left in advice.not_understood:
        err.print(Hanging("not understood: ", str(left)), crop=False)
    if advice.not_understood:
        remark = "no metrics mode and no drop is proposed: these statements may use any column"
        err.print(Hanging("", remark), crop=False)
    if execute:
        made = apply_proposals(table, advice.proposals)
        (err if as_json else context.terminal.out).print(Hanging(f"{'changes made':<{_LABEL}}", str(made)), crop=False)
    elif advice.proposals:
        remark = "nothing was changed; --execute changes metrics modes and the order of columns"
        err.print(Hanging("", remark), crop=False)
    return 1 if advice.not_understood else 0


@maintain.command("rewrite-position-deletes")
@_of_table
@click.option("--min-input-files", type=click.IntRange(min=1), default=5, show_default=True, help="Of a partition.")
@click.option("--rewrite-all", is_flag=True, help="Files of any size and number.")
@click.option("--dry-run", is_flag=True, help="Only count what would be removed and added.")
@click.option("--branch", default="main", show_default=True, help="Where.")
@pass_context
def rewrite_position_deletes(
    context: Context, *, table: icebench.Table, min_input_files: int, rewrite_all: bool, dry_run: bool, branch: str
) -> int:
    """Put small position-delete files together; in format version 3 make them deletion vectors."""
    rewrite = table.maintenance.rewrite_position_deletes
    done = rewrite(min_input_files=min_input_files, rewrite_all=rewrite_all, dry_run=dry_run, branch=branch)
    _print_result(context, done)
    return 0


@maintain.command("convert-equality-deletes")
@_of_table
@click.option("--branch", default="main", show_default=True, help="Where.")
@pass_context
def convert_equality_deletes(context: Context, *, table: icebench.Table, branch: str) -> int:
    """Delete by position what equality deletes delete, and remove these."""
    _print_result(context, table.maintenance.convert_equality_deletes(branch=branch))
    return 0


@maintain.command("compute-table-stats")
@_of_table
@click.option("--column", "columns", metavar="NAME", multiple=True, help="All on the top level by default. Repeatable.")
@click.option("--snapshot", type=int, metavar="ID", help="Of this snapshot; the current one by default.")
@pass_context
def compute_table_stats(
    context: Context, *, table: icebench.Table, columns: tuple[str, ...], snapshot: int | None
) -> int:
    """Estimate how many distinct values columns have, for Spark, Trino and `icebench profile`."""
    done = table.maintenance.compute_table_stats(columns or None, snapshot_id=snapshot)
    _line(context, "data files", f"{done.files:,}, read: {done.files_read:,}")
    _line(context, "distinct values", f"in {done.statistics_path}")
    for column, count in done.distinct_values.items():
        _line(context, column, f"{count:,}")
    return 0


@maintain.command("compute-partition-stats")
@_of_table
@click.option("--snapshot", type=int, metavar="ID", help="Of this snapshot; the current one by default.")
@pass_context
def compute_partition_stats(context: Context, *, table: icebench.Table, snapshot: int | None) -> int:
    """Write sizes and counts of each partition, for planners of other engines."""
    done = table.maintenance.compute_partition_stats(snapshot_id=snapshot)
    _line(context, "partitions", f"{done.partitions:,}, in {done.statistics_path}")
    _line(context, "manifests read", f"{done.manifests_read:,}")
    return 0


@maintain.command("rewrite-manifests")
@_of_table
@click.option("--branch", default="main", show_default=True, help="Where.")
@pass_context
def rewrite_manifests(context: Context, *, table: icebench.Table, branch: str) -> int:
    """Write manifests again, the files of a partition together."""
    snapshot = table.maintenance.rewrite_manifests(branch=branch)
    for key in ("manifests-created", "manifests-kept", "manifests-replaced", "entries-processed"):
        if key in snapshot.summary:
            _line(context, key.replace("-", " "), snapshot.summary[key])
    return 0


@maintain.command("rewrite-table-path")
@partial(_of_table, or_place=True)
@click.option("--source-prefix", required=True, metavar="LOCATION", help="The directory to replace in all locations.")
@click.option("--target-prefix", required=True, metavar="LOCATION", help="What replaces it.")
@click.option("--start-version", metavar="NAME", help="The metadata file that was copied last: only what came later.")
@click.option("--end-version", metavar="NAME", help="The newest metadata file to copy; the current one by default.")
@click.option("--staging-location", metavar="LOCATION", help="A directory for what is written, by default a new one.")
@pass_context
def rewrite_table_path(
    context: Context,
    *,
    table: icebench.Table,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None,
    end_version: str | None,
    staging_location: str | None,
) -> int:
    """Stage the table's metadata with other locations, and list which files to copy where.

    TABLE may be its directory or metadata file, too. Nothing else is copied.

    Copy what is listed, in its order, and register the table at its new place.
    """
    done = table.maintenance.rewrite_table_path(
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
    )
    _line(context, "latest version", done.latest_version)
    _line(context, "list of files", str(done.file_list_location))
    _print_result(context, done)
    return 0


@maintain.command("expire-snapshots")
@_of_table
@click.option(
    "--older-than", type=Moment(), metavar="TIME", help="Snapshots from before; the table's own limit by default."
)
@click.option("--retain-last", type=click.IntRange(min=1), help="Keep that many of each branch, whatever their age.")
@click.option("--delete", is_flag=True, help="Do it: without this the snapshots are only listed.")
@pass_context
def expire_snapshots(
    context: Context,
    *,
    table: icebench.Table,
    older_than: int | None,
    retain_last: int | None,
    delete: bool,
) -> int:
    """Expire old snapshots and delete the files that only they need.

    TIME is "now", an age (7d, 12h, 30m), a date or an ISO timestamp, in UTC unless it has a zone.
    """
    done = table.maintenance.expire_snapshots(older_than=older_than, retain_last=retain_last, dry_run=not delete)
    _print_result(context, done)
    _hint_at_delete(context, done.snapshot_ids, deletes=delete)
    if done.error is not None:
        context.terminal.err.print(Hanging("no file was deleted: ", str(done.error)), crop=False)
    return 1 if done.error is not None or done.not_deleted else 0


@maintain.command("remove-orphan-files")
@_of_table
@click.option("--older-than", type=Moment(), metavar="TIME", help="Files from before; three days ago by default.")
@click.option("--delete", is_flag=True, help="Do it: without this the files are only listed.")
@pass_context
def remove_orphan_files(
    context: Context,
    *,
    table: icebench.Table,
    older_than: int | None,
    delete: bool,
) -> int:
    """Remove orphan files: files in the table's directories that no snapshot or metadata file refers to.

    A file that a writer is about to commit is an orphan until then: a TIME nearer than the longest write loses data.
    TIME is "now", an age (7d, 12h, 30m), a date or an ISO timestamp, in UTC unless it has a zone.
    """
    done = table.maintenance.remove_orphan_files(older_than=older_than, dry_run=not delete)
    _print_result(context, done)
    _hint_at_delete(context, done.locations, deletes=delete)
    return 1 if done.not_deleted else 0


def _append_to_log(
    file: TextIO, table: str, decision: Decision, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> None:
    entry = {"at": now().isoformat(), "table": table, **decision.to_dict()}
    file.write(json.dumps(entry) + "\n")
    file.flush()


def _print_result(context: Context, done: object) -> None:
    """Print what was done, one figure per line: of lists, the length and the first entries."""
    for field in fields(done):  # type: ignore[arg-type]
        value = getattr(done, field.name)
        label = field.name.replace("_", " ")
        if isinstance(value, int):
            _line(context, label, f"{value:,}")
        elif isinstance(value, float):
            _line(context, label, f"{value:,.2f}")
        elif isinstance(value, tuple) and field.name not in {"failed", "snapshots"}:
            _line(context, label, f"{len(value):,}")
            for each in value[:_SHOWN_LOCATIONS]:
                _line(context, "", str(each))
            if len(value) > _SHOWN_LOCATIONS:
                _line(context, "", f"and {len(value) - _SHOWN_LOCATIONS:,} more")


def _line(context: Context, label: str, value: str) -> None:
    context.terminal.out.print(Hanging(f"{label:<{_LABEL}}", value), crop=False)


def _column_uses(uses: Sequence[ColumnUse]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    grid.add_column("column", overflow="fold")
    for name in ("data", "metrics", "of plans", "read by", "filtered by"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("key")
    for use in uses:
        sizes = (quantity(size, "bytes") for size in (use.data_bytes, use.statistics_bytes))
        shares = (f"{share:.0%}" for share in (use.planning_share, use.read, use.filtered))
        grid.add_row(use.name, *sizes, *shares, ", ".join(use.needed))
    return grid


def _hint_at_delete(context: Context, found: Sequence[object], *, deletes: bool) -> None:
    if found and not deletes:
        context.terminal.err.print("nothing was changed; --delete does it")

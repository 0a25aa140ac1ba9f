"""The profile of a table in a terminal, in at most N lines: figures first, then what costs, most expensive first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

import icebench
from icebench.bench.report.line_counts import height
from icebench.bench.report.profile import NOTHING, Place, age, bins, fix_commands, headline
from icebench.bench.report.quantities import digits, quantity
from icebench.bench.report.wrapping import Command, Hanging

_BAR = 24
_LABEL = 12
_UNLIMITED = 10_000
_FEWEST_COLUMNS = 3
_SHOWN_CONTRADICTIONS = 3
_LAST_LINES = 2
"""Of what is left out, in a narrow terminal."""


def profile_lines(
    profile: icebench.TableProfile,
    place: Place,
    console: Console,
    *,
    lines: int,
    filtered: Mapping[str, float] = NOTHING,
) -> Iterator[RenderableType]:
    """What to print, in at most `lines` lines. Columns are left out first, then the cheapest reasons, as the last line
    says. `filtered` has the share of queries that filter by a column or partition field."""
    title = Text(f"{profile.name}: {headline(profile)}", style="bold")
    opening: list[RenderableType] = [title, _summary(profile, filtered), _histogram(profile)]
    left = lines - 1 - _LAST_LINES - height(console, *opening)
    reasons = [_reason(number, *found) for number, found in enumerate(fixes(profile, place), 1)]
    columns = _columns_by_depth(profile, filtered)
    room = height(console, _column_grid(profile, columns[:_FEWEST_COLUMNS], filtered, console)) if columns else 0
    shown: list[RenderableType] = []
    for part in reasons:
        if height(console, *shown, part) + room > left:
            break
        shown.append(part)
    left -= height(console, *shown)
    most = min(len(columns), max(0, left))
    while most and height(console, _column_grid(profile, columns[:most], filtered, console)) > left:
        most -= 1
    yield from opening
    if most:
        yield _column_grid(profile, columns[:most], filtered, console)
    yield Text(
        "Costs in bytes, most expensive first; an open counts as 4 MB"
        if reasons
        else "Nothing costs more than 1 % of a read of the table.",
        style="bold",
    )
    yield from shown
    hidden = [f"{len(columns) - most:,} columns"] if len(columns) > most else []
    hidden += [f"{len(reasons) - len(shown):,} reasons"] if len(reasons) > len(shown) else []
    more = f"{' and '.join(hidden)} more: " if hidden else ""
    yield Text(f"{more}--html FILE draws all, --json prints it", style="dim")


def _summary(profile: icebench.TableProfile, filtered: Mapping[str, float]) -> Group:
    return Group(*(Hanging(f"{label:<{_LABEL}}", text) for label, text in _facts(profile, filtered)))


def _facts(profile: icebench.TableProfile, filtered: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    files, deletes, history = profile.files, profile.deletes, profile.history
    sizes = f"{files.small_files:,} small and {files.large_files:,} large files"
    becomes = f"{files.compaction_files:,} would become about {files.compaction_result_files:,}"
    yield "Compaction", f"{sizes}; {becomes if files.compaction_files else 'none would be rewritten'}"
    if any(kind.files for kind in deletes.kinds):
        idle = sum(kind.dangling_files for kind in deletes.kinds)
        most = f"at most {deletes.most_on_a_file:,} on one file"
        yield "Deletes", f"{deletes.data_files:,} data files have deletes, {most}; {idle:,} delete files are dangling"
    if profile.partitions is not None:
        own = profile.partitions
        sizes = f"{own.partitions:,} of {quantity(own.sizes.median, 'bytes')} (median)"
        yield "Partitions", f"{sizes}, the largest {digits(own.skew)}x the mean; {own.files.median:,} files each"
    for each in profile.manifests.clustering:
        opened = f"{digits(each.opened)} of {profile.manifests.data_manifests:,}"
        asked = f"; {quantity(filtered.get(each.name, 0.0), 'share')} of the queries have one" if filtered else ""
        yield "Manifests", f"a filter on {each.name} opens {opened}; {digits(each.possible)} would do{asked}"
    if profile.footers is not None:
        size = quantity(profile.footers.row_group_bytes.median, "bytes")
        own_groups = f"{profile.footers.row_groups:,} row groups of {size}"
        wrong = f"{profile.footers.contradicting_files:,} files are not as their manifest entries say"
        yield "Footers", f"{own_groups} (median), {profile.footers.pages:,} pages; {wrong}"
        for file in profile.footers.contradictions[:_SHOWN_CONTRADICTIONS]:
            yield "", f"{file.what}: {file.file_path}: {file.detail}"
    snapshots = f"{history.snapshots:,} snapshots, {history.expirable_snapshots:,} expirable"
    retained = f"about {quantity(history.retained_bytes, 'bytes')} are only in history"
    yield "History", f"{snapshots}, the oldest {age(history.oldest_age_ms)} old; {retained}"
    if profile.table_statistics is not None:
        counted = sum(column.distinct_values is not None for column in profile.columns)
        changed = digits(100 * profile.table_statistics.changed_share)
        yield "Statistics", f"distinct values of {counted:,} columns; {changed} % of the rows changed since"
    if profile.partition_statistics is not None:
        changed = digits(100 * profile.partition_statistics.changed_share)
        yield "", f"of partitions; {changed} % of the rows changed since"
    claims = [f"{each.files:,} {each.order or 'unsorted'}" for each in profile.sort_orders]
    if claims:
        checked = profile.order
        kept = (
            "" if checked is None else f"; of {checked.read_files:,} read, {checked.unsorted_files:,} are not sorted so"
        )
        yield "Sorted by", f"files claim: {'; '.join(claims)}{kept}"


def _histogram(profile: icebench.TableProfile) -> Grid:
    found = profile.files.histogram
    most = max(found.files, default=0)
    grid = Grid(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for label, number in zip(bins(found.lower, "bytes"), found.files, strict=True):
        grid.add_row(label, f"{'█' * max(number > 0, round(_BAR * number / most))} {number:,}")
    return grid


def _columns_by_depth(profile: icebench.TableProfile, filtered: Mapping[str, float]) -> list[int]:
    """Places of the columns with bounds: those that most queries filter by, then the best clustered."""
    found = [
        (-filtered.get(column.name, 0.0), (column.within_partitions or column.table).average_depth, place)
        for place, column in enumerate(profile.columns)
        if column.table is not None and column.is_current
    ]
    return [place for _, _, place in sorted(found)]


def _column_grid(
    profile: icebench.TableProfile, places: list[int], filtered: Mapping[str, float], console: Console
) -> Grid:
    has_sketches = any(column.distinct_values is not None for column in profile.columns)
    headings = (
        "column" if filtered else "best clustered column",
        "depth",
        "in partitions",
        "overlaps",
        "no bounds",
        "statistics",
        *["distinct"] * has_sketches,
        *["filtered by"] * bool(filtered),
    )
    rows = list(_column_rows(profile, places, filtered, has_sketches=has_sketches))
    grid = _headed(headings, rows)
    wide = console.options.update(max_width=_UNLIMITED)
    if (
        console.measure(grid, options=wide).maximum > console.width
    ):  # headings in two lines, so that names need not be broken
        grid = _headed([headings[0], *(heading.replace(" ", "\n") for heading in headings[1:])], rows)
    return grid


def _headed(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for place, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _column_rows(
    profile: icebench.TableProfile, places: list[int], filtered: Mapping[str, float], *, has_sketches: bool
) -> Iterator[Sequence[str]]:
    for place in places:
        column = profile.columns[place]
        assert column.table is not None
        within = column.within_partitions
        yield (
            column.name,
            digits(column.table.average_depth),
            "" if within is None else digits(within.average_depth),
            digits(column.table.average_overlaps),
            f"{column.files_without_bounds:,}",
            quantity(column.statistics_bytes, "bytes"),
            *["" if column.distinct_values is None else f"{column.distinct_values:,}"] * has_sketches,
            *[quantity(filtered.get(column.name, 0.0), "share")] * bool(filtered),
        )


def fixes(profile: icebench.TableProfile, place: Place) -> Iterator[tuple[str, str, str]]:
    """The statement, the gain and a command of each reason."""
    for reason, fix in zip(profile.reasons, fix_commands(profile, place), strict=True):
        yield (
            f"{reason.statement}: costs {quantity(reason.cost_bytes, 'bytes')}",
            reason.gain,
            fix.command or fix.sql,
        )


def _reason(number: int, statement: str, gain: str, command: str) -> Group:
    lead = f"{number}.  "
    return Group(Hanging(lead, statement), Hanging(" " * len(lead), gain, "dim"), Command(command, len(lead)))

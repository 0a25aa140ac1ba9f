"""The section on pruning: shares of a table's files, and the stages at which they were pruned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from icebench.bench.report import tables
from icebench.bench.report.charts import Bar, BarChart, BarPanel, Share
from icebench.bench.report.compare import Records, median
from icebench.bench.report.layouts import Grid, counted_bytes
from icebench.bench.report.model import Cell, Finding, Section, Table, Tone, plain
from icebench.bench.report.quantities import listed, quantity
from icebench.bench.statistics.claims import LEAST_EFFECT

MATCHING, WASTED, PRUNED = "planned, holds a matching row", "planned for nothing", "pruned"
_SHARES = {
    "bytes_planned_share": "Bytes planned",
    "false_positive_rate": "False positives",
    "wasted_files_share": "Planned for nothing",
    "recall": "Recall",
}
_MOST_GROUPS = 8
"""Of layouts that are named one by one."""
_FILES = ("files_total", "files_matching", "files_wasted")

_FUNNEL = (
    ("manifests_in_list", "Manifests in list"),
    ("manifests_skipped_by_summary", "Skipped by summary"),
    ("manifests_decoded", "Decoded"),
    ("manifest_bytes_decoded", "Bytes decoded"),
    ("entries_decoded", "Entries decoded"),
    ("entries_skipped_by_partition", "Skipped by partition"),
    ("entries_skipped_by_schema_id", "Entries skipped by schema id"),
    ("entries_skipped_by_metrics", "Skipped by metrics"),
    ("entries_skipped_by_index", "Skipped by index"),
    ("files_planned", "Files planned"),
    ("row_groups_read", "Row groups read"),
    ("row_groups_skipped", "Row groups skipped"),
)


_STAGES = (
    ("entries_skipped_by_partition", "After partition"),
    ("entries_skipped_by_schema_id", "After schema id"),
    ("entries_skipped_by_metrics", "After metrics"),
    ("entries_skipped_by_index", "After index"),
)
"""What each stage of entries skips, in the order of the stages; the last leaves what is planned."""


def pruning_section(records: Records) -> Section:
    """The section of the records of the pruning measurement."""
    shown = [_pruning_table(records)]
    shown += [table for table in (_funnel(records), _candidates(records)) if table is not None]
    return Section(
        key="pruning",
        title="Pruning effectiveness",
        explanation=(
            "Which files a plan keeps, against the truth: every file was searched for matching rows by brute force. "
            "A plan may keep a file without a match (a false positive) and must never lose one that matches: recall is "
            "exactly 100%, or the run fails. These are counts, not timings."
        ),
        charts=(chart,) if (chart := _pruning_chart(records)) is not None else (),
        tables=(*shown, *tables.lookups(records, raw_samples=False)),
    )


Figures = Mapping[str, float]


def alike(records: Records, figures: Callable[[Records], Figures]) -> Iterator[tuple[str, Figures]]:
    """The engines of one filter and layout, put together where all their figures are equal; in words, with the figures.

    Engines without figures are left out.
    """
    groups: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for engine in records.engines:
        found = figures(records.where(engine=engine))
        if found:
            groups.setdefault(tuple(sorted(found.items())), []).append(engine)
    everyone = len(records.engines)
    for found_by_group, engines in groups.items():
        name = f"all {everyone} engines" if len(engines) == everyone > 2 else listed(engines)
        yield name, dict(found_by_group)


def _effect(records: Records) -> Figures:
    """Shares by metric and files by counter, of one engine, filter and layout."""
    counted = {name: n for r in records.all for name, n in r.counters.items() if name in _FILES}
    return {r.metric: median(r) for r in records.all} | counted


def _stages(records: Records) -> Figures:
    counted = {name: n for r in records.all for name, n in r.counters.items()}
    # The harness counts files for every engine; only those that count manifests count their own work.
    return {name: counted[name] for name, _ in _FUNNEL if name in counted} if "manifests_in_list" in counted else {}


def _pruning_table(records: Records) -> Table:
    rows = []
    for case, layout, found in records.cases():
        for engines, figures in alike(found, _effect):
            total = figures.get("files_total")
            rows.append(
                (
                    plain(case),
                    plain(layout),
                    plain(engines),
                    _files_cell(figures.get("files_matching_share"), total),
                    _files_cell(figures.get("files_planned_share"), total),
                    *(_share_cell(name, figures.get(name)) for name in _SHARES),
                )
            )
    return Table(
        title="Files planned against files that match",
        columns=("Filter", "Layout", "Engine", "Files that match", "Files planned", *_SHARES.values()),
        rows=tuple(rows),
        note="False positives: of the files without a match, how many are planned. Planned for nothing: of the planned "
        "files, how many hold no match. Recall: of the files with a match, how many are planned.",
    )


def _files_cell(share: float | None, total: float | None) -> Cell:
    if share is None:
        return Cell(text="-")
    if total is None:
        return Cell(text=quantity(share, "ratio"))
    return Cell(text=f"{round(share * total):,} of {int(total):,}", detail=quantity(share, "ratio"))


def _share_cell(name: str, share: float | None) -> Cell:
    if share is None:
        return Cell(text="-")
    # A recall that rounds to 100% and is not 1 has lost rows.
    tone = Tone.WRONG if name == "recall" and share != 1 else Tone.PLAIN
    return Cell(text=quantity(share, "ratio"), tone=tone)


def _pruning_chart(records: Records) -> BarChart | None:
    panels: dict[str, list[Bar]] = {}
    for case, layout, found in records.cases():
        # An interrupted run may have recorded some of the figures of its last case.
        groups = [(e, f) for e, f in alike(found, _effect) if {"files_planned_share", "wasted_files_share"} <= f.keys()]
        for engines, figures in groups:
            planned = 100 * figures["files_planned_share"]
            wasted = planned * figures["wasted_files_share"]
            parts = ((MATCHING, planned - wasted), (WASTED, wasted), (PRUNED, 100 - planned))
            bar = Bar(
                label=layout if len(groups) == 1 else f"{layout}\n{engines}",
                shares=tuple(Share(kind=kind, value=value) for kind, value in parts),
                note=f"{quantity(planned / 100, 'ratio')} planned",
            )
            panels.setdefault(case, []).append(bar)
    if not panels:
        return None
    return BarChart(
        caption="What a plan keeps of the table's files, by filter and layout.",
        axis="% of the table's files",
        kinds=(MATCHING, WASTED, PRUNED),
        panels=tuple(BarPanel(title=case, bars=tuple(bars)) for case, bars in panels.items()),
    )


def _funnel(records: Records) -> Table | None:
    counted = {name for r in records.all for name in r.counters}
    stages = [(name, title) for name, title in _FUNNEL if name in counted]
    rows = tuple(
        (plain(case), plain(layout), plain(engines), *(_count_cell(figures.get(name)) for name, _ in stages))
        for case, layout, found in records.cases()
        for engines, figures in alike(found, _stages)
    )
    if not rows:
        return None
    return Table(
        title="Where files are pruned, stage by stage",
        columns=("Filter", "Layout", "Engine", *(title for _, title in stages)),
        rows=rows,
        note="Exact counts, from the manifest list down; engines that do not count their work are left out.",
    )


def _candidates(records: Records) -> Table | None:
    rows = tuple(
        (plain(case), plain(layout), plain(engines), *_candidate_cells(figures))
        for case, layout, found in records.cases()
        for engines, figures in alike(found, _candidate_figures)
    )
    if not rows:
        return None
    return Table(
        title="Files that each stage leaves, and how many of them for nothing",
        columns=("Filter", "Layout", "Engine", "All files", "In decoded manifests", *(t for _, t in _STAGES), "Match"),
        rows=rows,
        note="The smaller figure is the false-positive rate there: of the files without a match, how many are still "
        "candidates. The last stage leaves what is planned. Where a table has delete files, those that a stage skips "
        "are among what it leaves out and can no longer be distinguished from data files: such rows are left out.",
    )


def _candidate_figures(records: Records) -> Figures:
    """Files by stage, of one engine, filter and layout; nothing where delete files are counted among them."""
    counted = {name: n for r in records.all for name, n in r.counters.items()}
    has_deletes = counted.get("delete_files_planned", 0) + counted.get("delete_files_unused", 0)
    if "entries_decoded" not in counted or "files_total" not in counted or has_deletes:
        return {}
    left = counted["files_planned"]
    stages = {}
    for name, _ in reversed(_STAGES):
        stages[name] = left
        left += counted.get(name, 0)
    return {**stages, "decoded": left, "total": counted["files_total"], "matching": counted["files_matching"]}


def _candidate_cells(figures: Figures) -> Iterator[Cell]:
    total, matching = figures["total"], figures["matching"]
    for name in ("total", "decoded", *(name for name, _ in _STAGES)):
        wrong = figures[name] - matching
        rate = wrong / (total - matching) if total > matching else 0.0
        yield Cell(text=f"{int(figures[name]):,}", detail=quantity(rate, "ratio"))
    yield Cell(text=f"{int(matching):,}")


def _count_cell(number: float | None) -> Cell:
    return Cell(text="-" if number is None else f"{int(number):,}")


def lost_files(records: Records) -> Iterator[Finding]:
    """Plans that lack a file with a matching row."""
    for record in records.where(measurement="pruning", metric="recall").all:
        if median(record) != 1:
            yield Finding(
                statement=f"{record.engine} loses rows: for {record.case} on {record.layout} it does not plan "
                "every file that holds a matching row.",
                evidence=f"Recall is {median(record):.6f} and must be exactly 1.",
            )


def layouts_by_filter(records: Records) -> Iterator[Finding]:
    """For each filter, the layouts of which the least is read, and how much less that is; they are alike where they
    differ by no more than `LEAST_EFFECT`. Where bytes are not counted it is the share of its own bytes that is planned
    of each."""
    pruning, counted = records.where(measurement="pruning"), counted_bytes(records)
    for case in pruning.names("case"):
        of_case = pruning.where(case=case)
        own = of_case.where(engine=next(iter(of_case.engines)))
        amounts, planned = _amounts(own, case, counted)
        if len(amounts) < 2:
            continue
        ranked = sorted(amounts, key=lambda layout: amounts[layout])
        text = own.all[0].detail.get("filter")
        evidence = [f"{text}."] if text else []
        if counted is not None and not planned:
            evidence.append(f"Bytes read are counted by {counted.engine}.")
        evidence += _truth(own, ranked[0])
        yield Finding(statement=f"For {case}{_least(amounts, ranked, planned)}.", evidence=" ".join(evidence))


def _amounts(own: Records, case: str, counted: Grid | None) -> tuple[dict[str, float], str]:
    """What is read under a filter, by layout: bytes where these are counted; else a share of what the second value
    names, which is planned."""
    if counted is not None and case in counted.cases:
        return {layout: amount for (name, layout), amount in counted.values.items() if name == case}, ""
    for planned in ("bytes", "files"):
        if shares := {r.layout: median(r) for r in own.where(metric=f"{planned}_planned_share").all}:
            return shares, planned
    return {}, ""


def _least(amounts: Mapping[str, float], ranked: Sequence[str], planned: str) -> str:
    """Which layouts are best, by how much, as the end of a sentence."""
    unit, verb = ("ratio", "plan") if planned else ("bytes", "read")
    most = amounts[ranked[0]] * math.exp(LEAST_EFFECT)
    least = [layout for layout in ranked if amounts[layout] <= most]
    shown = " to ".join(dict.fromkeys(quantity(amounts[layout], unit) for layout in (least[0], least[-1])))
    if least == ranked:
        better = "prunes better" if planned else "reads less"
        return f" no layout {better}: each {verb}s {shown}{f' of its {planned}' if planned else ''}"
    if planned:
        shown += f" of {'its' if len(least) == 1 else 'their'} {planned}"
    rest = _grouped((quantity(amounts[layout], unit), layout) for layout in ranked[len(least) :])
    return f", {listed(least)} {verb}{'s' if len(least) == 1 else ''} least: {shown}, against {rest}"


def _grouped(figures: Iterable[tuple[str, str]]) -> str:
    """Equal figures once: ``20% with b, 100% with c and d``; of many, the least and the most."""
    groups: dict[str, list[str]] = {}
    for figure, layout in figures:
        groups.setdefault(figure, []).append(layout)
    if len(groups) > _MOST_GROUPS:
        least, *_, most = groups
        return f"{least} to {most} with {sum(map(len, groups.values()))} others"
    return listed([f"{figure} with {listed(layouts)}" for figure, layouts in groups.items()])


def _truth(own: Records, layout: str) -> Iterator[str]:
    needed = own.one(metric="files_matching_share", layout=layout)
    wasted = own.one(metric="wasted_files_share", layout=layout)
    if needed is not None and wasted is not None:
        yield (
            f"Perfect pruning of {layout} would plan {quantity(median(needed), 'ratio')} of its files; of the planned "
            f"ones {quantity(median(wasted), 'ratio')} hold no match."
        )

"""A table on one screen: what it is, and the two problems that cost most, each with the command that fixes it."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterator
from itertools import islice

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import icebench
from icebench.bench.report.profile import Place, age, headline
from icebench.bench.report.profile_console import fixes
from icebench.bench.report.quantities import count, quantity
from icebench.bench.report.wrapping import command_lines
from icebench.engine.display import printable

_LABEL = 11
_PROBLEMS = 2
_LINES_OF_FACT = 2
_MOST = 2000
"""Characters of a text; a screen has fewer."""


def overview_lines(
    table: icebench.Table, profile: icebench.TableProfile, place: Place, console: Console, *, lines: int
) -> Iterator[Text]:
    """What to print, a line each, in at most `lines` lines of the terminal.

    The schema is shortened first, then what a fix gains is left out. Commands stay ready to be pasted.
    """
    width = console.width
    name = place.table if place.words != Place().words else profile.name
    title = Text(f"{printable(name, 60)}: format {table.format_version}, {headline(profile)}", style="bold")
    above = list(title.wrap(console, width))
    facts = [line for label, text in _facts(table, profile) for line in _labelled(console, label, text, _LINES_OF_FACT)]
    below = _problems(profile, place, console, gains=True)
    left = lines - len(above) - len(facts)
    if _height(below, width) >= left:
        below = _problems(profile, place, console, gains=False)
    columns = f"{count(len(table.schema.fields), 'column')}: {', '.join(_columns(table))}"
    yield from above
    yield from _labelled(console, "Schema", columns, max(1, left - _height(below, width)))
    yield from facts
    yield from below


def _height(lines: list[Text], width: int) -> int:
    return sum(max(1, -(-cell_len(line.plain) // width)) for line in lines)


def _labelled(console: Console, label: str, text: str, most: int) -> list[Text]:
    """The text in at most that many lines, beside its label; it ends with an ellipsis if there is more."""
    wrapped = Text(printable(text, _MOST)).wrap(console, max(20, console.width - _LABEL))
    shown = [Text(line.plain.rstrip()) for line in wrapped[:most]]
    if len(wrapped) > most:
        room = max(20, console.width - _LABEL) - 2
        shown[-1] = Text(f"{shown[-1].plain[:room].rstrip(' ,')} …")
    labels = [label, *[""] * len(shown)]
    return [Text.assemble((f"{left:<{_LABEL}}", "dim"), line) for left, line in zip(labels, shown, strict=False)]


def _columns(table: icebench.Table) -> Iterator[str]:
    keys = table.schema.identifier_field_ids
    for field in table.schema.fields:
        type_ = field.type if isinstance(field.type, icebench.PrimitiveType) else str(field.type).partition("<")[0]
        yield f"{field.name} {type_}{' key' if field.field_id in keys else ' required' if field.required else ''}"


def _facts(table: icebench.Table, profile: icebench.TableProfile) -> Iterator[tuple[str, str]]:
    name_of = table.schema.name_of
    spec = (_term(str(f.transform), [name_of.get(f.source_id, "?")]) for f in table.spec.fields)
    yield "Partitions", ", ".join(spec) or "unpartitioned"
    keys = table.sort_order.fields
    order = (
        f"{_term(str(f.transform), [name_of.get(s, '?') for s in f.source_ids])} {f.direction} {f.null_order}"
        for f in keys
    )
    yield "Order", ", ".join(order) or "unsorted"
    files, deletes = profile.files, profile.deletes
    if files.files:
        least, median, most = (
            quantity(size, "bytes") for size in (files.sizes.least, files.sizes.median, files.sizes.most)
        )
        counts = f"{files.small_files:,} small, {files.large_files:,} large"
        yield "Sizes", f"data files of {least} to {most}, median {median}; {counts}"
    kinds = {"position": deletes.positions, "equality": deletes.equality, "vector": deletes.vectors}
    found = [f"{kind.files:,} {name} ({count(kind.records, 'row')})" for name, kind in kinds.items() if kind.files]
    yield "Deletes", f"{', '.join(found)}, on {count(deletes.data_files, 'data file')}" if found else "none"
    head = table.current_snapshot
    if head is not None:
        when = dt.datetime.fromtimestamp(head.timestamp_ms / 1000, dt.UTC)
        oldest = f"oldest {age(profile.history.oldest_age_ms)} old"
        refs = ", ".join(f"{ref.type} {name}" for name, ref in table.refs.items())
        yield (
            "Snapshots",
            f"{len(table.snapshots):,}, {oldest}, last {when:%Y-%m-%d %H:%M} UTC ({head.operation}); {refs}",
        )
    yield "Metadata", table.metadata_location


def _term(transform: str, sources: list[str]) -> str:
    """``day(ts)``, ``bucket[4](id)``; the column alone if it is the identity."""
    names = ", ".join(sources)
    return names if transform == "identity" else f"{transform}({names})"


def _problems(profile: icebench.TableProfile, place: Place, console: Console, *, gains: bool) -> list[Text]:
    width = console.width
    found = list(islice(fixes(profile, place), _PROBLEMS))
    more = len(profile.reasons) - len(found)
    rest = f"; {more:,} more: icebench profile" if more else ""
    title = f"What costs most (an open counts as 4 MB){rest}" if found else "Nothing costs more than 1 % of a read."
    lines = [Text(title, style="bold")]
    for number, (statement, gain, command) in enumerate(found, 1):
        lines += [Text(f"{number}. {_cut_statement(statement, width - 3)}")]
        lines += [Text(f"   {_cut(gain, width - 3)}", style="dim")] * gains
        lines += _command(command, console)
    return lines + _command(shlex.join(["icebench", "table", "files", *place.reading]), console)


def _command(text: str, console: Console) -> list[Text]:
    return [Text(line, style="green") for line in command_lines(text, console.width if console.is_terminal else None)]


def _cut_statement(text: str, width: int) -> str:
    """The statement, cut before what it costs, which is why it is shown."""
    found, said, cost = text.rpartition(": costs ")
    return f"{_cut(found, width - len(said) - len(cost))}{said}{cost}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 2].rstrip(' ,;')} …"

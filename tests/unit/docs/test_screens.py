"""The screens that the guide shows of commands are what they print, and fit terminals of 80 and of 120 columns.

``pytest --icebench-accept tests/unit/docs/test_screens.py`` writes the pages anew.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

from icebench.bench.cli.main import COMMANDS
from icebench.bench.cli.maintain import maintain
from tests.tidy.source import REPOSITORY
from tests.unit.docs.screens import GATE, QUERIES, Home, home

GUIDE = REPOSITORY / "docs" / "guide"
AGAIN = "pytest --icebench-accept tests/unit/docs/test_screens.py"
NARROW, WIDE = 80, 120
TOPICS = {
    "A table": (
        "icebench wh db.events",
        "icebench profile wh db.events",
        "icebench profile wh db.events --queries q.sql",
        "icebench doctor wh db.events",
    ),
    "Metadata tables": (
        "icebench table snapshots wh db.events",
        "icebench table files wh db.events",
        "icebench table files wh db.events --where \"kind = 'data' and lower < 100\" --sort -rows",
        "icebench table manifests wh db.events",
        "icebench table partitions wh db.events",
        "icebench table refs wh db.events",
        "icebench table history wh db.events",
    ),
    "All columns of metadata tables": (
        "icebench table snapshots wh db.events --wide",
        "icebench table files wh db.events --wide --limit 9",
        "icebench table manifests wh db.events --wide",
        "icebench table partitions wh db.events --wide",
        "icebench table refs wh db.events --wide",
        "icebench table history wh db.events --wide",
    ),
    "Queries": (
        'icebench sql "select * from events where user_id < 3000 order by event_id limit 3" wh/db/events',
        'icebench sql "select country, count(*) as events from events group by country order by country" wh/db/events',
    ),
    "Advice": ("icebench advise wh db.events --queries q.sql",),
    "Maintenance": (
        "icebench maintain run wh db.events",
        "icebench maintain columns wh db.events --queries q.sql",
        "icebench maintain rewrite-position-deletes wh db.events --rewrite-all --dry-run",
        "icebench maintain expire-snapshots wh db.events --older-than 2026-02-01T00:00:00Z --retain-last 2",
        "icebench maintain remove-orphan-files wh db.events",
        "icebench gate --tables events.toml --accept",
        "icebench gate --tables events.toml",
        "icebench maintain rewrite-data-files wh db.events --sort --rewrite-all",
        "icebench gate --tables events.toml",
    ),
    "Measurements": (
        "icebench list",
        "icebench doctor",
        "icebench run quick --dry-run",
        "icebench compare",
        "icebench compare monthly sorted --long",
    ),
    "Mistakes": (
        "icebench wh db.evnts",
        "icebench profile wh",
        "icebench profil wh db.events",
        "icebench profile wh db.events --deeep",
        "icebench table fils wh db.events",
        'icebench table files wh db.events --where "row > 100"',
        'icebench table files wh db.events --where "rows > "',
        'icebench sql "select sum(amont) from events" wh/db/events',
        'icebench maintain rewrite-data-files wh db.events --where "user = 7"',
        "icebench maintain rewrite-data-files wh db.events --sort --sort-by user_id",
        "icebench maintain expire-snapshots wh db.events --older-than 2026-02-01",
        'icebench run --table wh/db/events --filter "user = 7"',
        "icebench advise wh db.events",
        "icebench compare sorted montly",
    ),
}
HELP = ("", *COMMANDS, *(f"maintain {name}" for name in maintain.commands), "history record")
ON_PURPOSE = "--wide"
"""Lines of such a command may be wider than the terminal: it gives them to a pager, which scrolls."""


class Shown(NamedTuple):
    """What a terminal shows of a command."""

    command: str
    width: int
    lines: list[str]


Screens = dict[str, list[tuple[Shown, Shown]]]


def screens() -> Screens:
    """The narrow and the wide screen of each command, by topic. Each width has a table of its own to change."""
    found: dict[int, dict[str, list[Shown]]] = {}
    for width in (NARROW, WIDE):
        with home() as place:
            found[width] = {topic: list(_shown(place, topic, width)) for topic in (*TOPICS, "--help")}
    return {topic: list(zip(found[NARROW][topic], found[WIDE][topic], strict=True)) for topic in found[NARROW]}


def _shown(place: Home, topic: str, width: int) -> Iterator[Shown]:
    for command in TOPICS.get(topic) or [" ".join(f"icebench {name} --help".split()) for name in HELP]:
        yield Shown(command, width, place.screen(command, width))


def test_screens(subtests: pytest.Subtests, request: pytest.FixtureRequest) -> None:
    """One test, so that with pytest-xdist one process makes the table."""
    found = screens()
    pages = {"commands.md": "".join(_commands_page(found)), "options.md": "".join(_options_page(found["--help"]))}
    for page, text in pages.items():
        with subtests.test(page):
            if request.config.getoption("--icebench-accept"):
                (GUIDE / page).write_text(text, encoding="utf-8")
            shown = (GUIDE / page).read_text(encoding="utf-8") if (GUIDE / page).is_file() else ""
            assert shown.splitlines() == text.splitlines(), f"docs/guide/{page} is out of date: {AGAIN}"
    for check in (wider_lines, lost_figures, broken_words, commands_to_paste):
        with subtests.test(check.__name__):
            assert list(check(found)) == []


def wider_lines(found: Screens) -> Iterator[str]:
    """Lines that are wider than the terminal, but for a word that is."""
    for command, width, lines in _every(found):
        if ON_PURPOSE not in command:
            yield from (f"{command}: {line}" for line in lines if len(line) > width and len(line.split()) > 1)


def lost_figures(found: Screens) -> Iterator[str]:
    """Figures that only a wide terminal shows, where the narrow one does not say that something is left out."""
    for narrow, wide in _pairs(found):
        lost = set(_figures(wide.lines)) - set(_figures(narrow.lines))
        if lost and not any(re.search(r"…|\bmore\b", line) for line in narrow.lines):
            yield f"{narrow.command}: {lost}"


def broken_words(found: Screens) -> Iterator[str]:
    """Numbers and names that end at the edge of the narrow terminal and go on in the next line."""
    for narrow, wide in _pairs(found):
        text = " ".join(wide.lines)
        for line, following in pairwise(narrow.lines):
            end, start = re.search(r"[\w.,-]+$", line), re.match(r"\s*([\w.,-]+)", following)
            if end and start and f"{end[0]}{start[1]}" in text:
                yield f"{narrow.command}: {end[0]} | {start[1]}"


def commands_to_paste(found: Screens) -> Iterator[str]:
    """Commands of several lines of the narrow terminal that are not those of the wide one when a shell reads them."""
    several = 0
    for narrow, wide in _pairs(found):
        whole = list(_pasted(wide.lines))
        yield from (f"{narrow.command}: {command}" for command in _pasted(narrow.lines) if command not in whole)
        several += sum(line.endswith("\\") for line in narrow.lines)
    if not several:
        yield "no command takes several lines"


def _pairs(found: Screens) -> Iterator[tuple[Shown, Shown]]:
    for of_topic in found.values():
        yield from of_topic


def _every(found: Screens) -> Iterator[Shown]:
    for pair in _pairs(found):
        yield from pair


def test_the_guide_shows_each_command_that_it_names() -> None:
    shown = {shlex.split(command)[1] for commands in TOPICS.values() for command in commands} | set(HELP)
    assert shown >= set(COMMANDS)


def _pasted(lines: Iterable[str]) -> Iterator[list[str]]:
    text = "\n".join(lines).replace("\\\n", "")
    for line in text.split("\n"):
        if line.strip().startswith("icebench ") and "'" not in line:
            yield shlex.split(line)


def _figures(lines: Iterable[str]) -> Iterator[str]:
    """The numbers in a screen, with their units."""
    for line in lines:
        yield from re.findall(r"(?<![\w.-])\d[\d.,]*\d(?: [KMG]?B\b)?(?![\w-])", line)


def _commands_page(found: Screens) -> Iterator[str]:
    yield f"""# What commands print

Each screen is what a terminal of 80 columns shows; where one of 120 columns shows something else, that is folded below
it. They are made by the project's tests, which compare them with this page: `{AGAIN}` writes it anew. All
options are in [the options of commands](options.md).

Commands fit the terminal: figures are never broken, commands that are to be pasted go on after a backslash, and a table
that is too wide is printed in parts. A pipe or a file gets whole lines.

The table `db.events` in the warehouse directory `wh` has 2,400 events of two months, in six appends, partitioned by
month and to be sorted by user; some users were deleted since. `q.sql` has its queries, `events.toml` what the gate
plans:

```sql
{QUERIES}```

```toml
{GATE}```
"""
    for topic, pairs in found.items():
        if topic == "--help":
            continue
        yield f"\n## {topic}\n"
        if topic == "All columns of metadata tables":
            yield "\n`--wide` shows lines however long they are, in a pager, where the arrow keys scroll.\n"
        for narrow, wide in pairs:
            yield f"\n```sh\n{narrow.command}\n```\n\n{_fenced(narrow.lines)}"
            if wide.lines != narrow.lines:
                yield f"\n<details><summary>At 120 columns</summary>\n\n{_fenced(wide.lines)}\n</details>\n"


def _options_page(pairs: list[tuple[Shown, Shown]]) -> Iterator[str]:
    yield """# The options of commands

What `--help` of each command prints, at 80 columns. [What commands print](commands.md) has examples.
"""
    for narrow, _ in pairs:
        yield f"\n## {narrow.command.removesuffix(' --help')}\n\n{_fenced(narrow.lines)}"


def _fenced(lines: Iterable[str]) -> str:
    text = "\n".join(lines)
    assert "```" not in text
    return f"```text\n{text}\n```\n"

"""Histories of one table that several engines change alternately; at the end all of them read the same rows.

Each file beside this one holds the histories of one theme; `language.py` has the words for them, `model.py` the rows
that must come out. `make test` plays a sample of them, `make soak` all.
"""

from __future__ import annotations

import pytest

from icebench.bench.setup_jars import is_cached
from tests.interop.histories import (
    all_types,
    appends,
    delete_rewrites,
    evolutions,
    references,
    row_changes,
    versions,
)
from tests.interop.histories.language import History
from tests.interop.histories.playing import Play

pytestmark = pytest.mark.skipif(not is_cached(), reason="Iceberg's Spark runtime is not in the Ivy cache")

THEMES = (appends, row_changes, delete_rewrites, evolutions, references, versions, all_types)


def cases():
    for theme in THEMES:
        for history in theme.HISTORIES:
            for version in history.versions:
                sampled = history.in_sample and version == max(history.versions)
                marks = () if sampled else (pytest.mark.soak,)
                yield pytest.param(history, version, id=f"{history.name} v{version}", marks=marks)


@pytest.mark.parametrize(("history", "version"), list(cases()))
def test_engines_in_turns_leave_the_same_rows(history: History, version: int, place_of) -> None:
    Play(history, version, place_of(history.catalog)).run()


def test_every_history_has_a_name_of_its_own() -> None:
    names = [history.name for theme in THEMES for history in theme.HISTORIES]
    assert len(set(names)) == len(names)

"""Screens of commands on a small table that is the same each time it is made: rows, file names, ids and times."""

from __future__ import annotations

import datetime as dt
import fcntl
import io
import os
import random
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import icebench
from icebench.bench.advise import advice, trial
from icebench.bench.advise.rates import Rates
from icebench.bench.cli.context import Context
from icebench.bench.cli.main import app as commands
from icebench.bench.cli.main import main
from icebench.bench.cli.terminal import Terminal
from tests.unit.bench.cli.test_main import write_run
from tests.unit.bench.test_doctor import Healthy

SCHEMA = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        ("user_id", pa.int64()),
        ("ts", pa.timestamp("us")),
        ("amount", pa.decimal128(9, 2)),
        ("country", pa.string()),
    ]
)
BATCHES, ROWS = 6, 400
START = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
BATCH = dt.timedelta(days=10)
QUERIES = """\
-- weight: 8
select sum(amount) from events where user_id = 24012;
-- weight: 2
select country, count(*) from events
where ts >= timestamp '2026-02-01 00:00:00' and ts < timestamp '2026-02-02 00:00:00' group by country;
"""
GATE = """\
name = "events"
engines = ["icebench"]
measurements = ["planning"]

[[workload]]
kind = "table"
path = "wh/db/events"

[filters]
one_user = "user_id = 24012"
one_day = "ts >= timestamp '2026-02-01 00:00:00' and ts < timestamp '2026-02-02 00:00:00'"
"""
BUILD_SECONDS = 0.25
"""What each trial of a layout is said to take."""
RATES = Rates(query=3e-3, manifest=4e-4, file=8e-4, row_group=3e-4, decoding=310e6, error=0.2, reads=40)
"""What reads are said to take: with the trials' seconds the only clock in what is shown."""
PLACE = Path("/tmp/icebench-screens")
"""The directory, the same each time: its name is in metadata files, and so in their sizes once they are compressed."""


class StillConsole(Console):
    """A terminal that shows no progress: what it leaves behind is nothing."""

    @property
    def is_dumb_terminal(self) -> bool:
        return True

    def pager(self, *_: Any, **__: Any) -> Any:
        return nullcontext()

    def status(self, *_: Any, **__: Any) -> Any:
        return nullcontext(_Still())


class _Still:
    def update(self, *_: object) -> None: ...


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Home:
    """The directory that commands run in.

    Args:
        patch: Undoes the clock and the chance of this process.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch, self._now = patch, START

    def fill(self) -> None:
        """Make the table, a run, queries and the definition of a gate."""
        self._patch.setattr(time, "time_ns", lambda: int(self._now.timestamp() * 1000) * 1_000_000)
        catalog = icebench.load_catalog("wh")
        self._reseed(0)
        table = catalog.create_table(
            "db.events",
            SCHEMA,
            partition_spec=[("ts", "month")],
            sort_order=["user_id"],
            properties={"write.delete.mode": "merge-on-read"},
        )
        for number in range(BATCHES):
            self._reseed(number + 1)
            self._now += BATCH
            table.append(_rows(number))
        table.create_tag("audited", snapshot_id=table.snapshots[2].snapshot_id)
        self._reseed(BATCHES + 1)
        self._now += dt.timedelta(days=1)
        table.delete("user_id < 2000")
        self._now += dt.timedelta(hours=3)
        orphan = Path("wh/db/events/data/ts_month=2026-01/00000-0-interrupted-00001.parquet")
        orphan.write_bytes(b"PAR1" * 500)
        os.utime(orphan, (START.timestamp(), START.timestamp()))
        write_run(Path("results"))
        for name, text in {"q.sql": QUERIES, "events.toml": GATE}.items():
            Path(name).write_text(text)

    def _reseed(self, seed: int) -> None:
        chance = random.Random(seed)
        self._patch.setattr(os, "urandom", chance.randbytes)
        self._patch.setattr(secrets, "randbelow", chance.randrange)

    def screen(self, command: str, width: int) -> list[str]:
        """What a terminal of that width shows of a command, without spaces at the ends of lines."""
        self._reseed(BATCHES + 2)
        file = _Screen()
        consoles = (StillConsole(file=file, width=width, height=1000, force_terminal=True, **_PLAIN) for _ in "oe")
        with pytest.MonkeyPatch.context() as patch:
            terminal = Terminal(*consoles)
            patch.setattr("icebench.bench.cli.main.Context", partial(Context, terminal=terminal))
            patch.setenv("COLUMNS", str(width))
            with redirect_stdout(file), redirect_stderr(file), pytest.raises(SystemExit):
                main(shlex.split(command)[1:])
        text = file.getvalue()
        assert "Traceback" not in text, text
        return [line.rstrip() for line in text.rstrip("\n").split("\n")]


_PLAIN: dict[str, Any] = {"color_system": None, "highlight": False, "markup": False}


@contextmanager
def home() -> Iterator[Home]:
    """A filled directory, which is the current one meanwhile; other processes wait for it. The machine is one on which
    everything is well."""
    with PLACE.with_suffix(".lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)  # of a process that was killed
        PLACE.mkdir()
        patch.chdir(PLACE)
        patch.setattr("icebench.bench.cli.doctor.Machine", Healthy)
        for command in _commands(commands):
            patch.setattr(command, "_help_option", None)  # Click keeps that of the first call, perhaps without -h
        patch.setattr("icebench.bench.cli.maintain.RunProgress", lambda _: nullcontext(_Still().update))
        patch.setattr(trial, "_rewrite", partial(_in_no_time, trial._rewrite))
        patch.setattr(advice, "fit", lambda *_: RATES)
        patch.setattr(trial, "tempfile", SimpleNamespace(TemporaryDirectory=_trials))
        try:
            found = Home(patch)
            found.fill()
            yield found
        finally:
            shutil.rmtree(PLACE)


def _in_no_time(rewrite: Callable[..., float], *args: object) -> float:
    rewrite(*args)
    return BUILD_SECONDS


@contextmanager
def _trials(**_: str) -> Iterator[str]:
    """The directory of trials of layouts, whose name is in sizes as that of the table is."""
    found = PLACE / "trials"
    found.mkdir()
    try:
        yield str(found)
    finally:
        shutil.rmtree(found)


def _commands(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from _commands(command)


def _rows(number: int) -> pa.Table:
    chance = np.random.default_rng(number)
    begin = np.datetime64((START + number * BATCH).replace(tzinfo=None, hour=0), "us")
    seconds = np.sort(chance.integers(0, int(BATCH.total_seconds()), ROWS))
    columns = {
        "event_id": np.arange(number * ROWS, (number + 1) * ROWS),
        "user_id": chance.integers(0, 50_000, ROWS),
        "ts": begin + seconds.astype("timedelta64[s]"),
        "amount": [f"{amount:.2f}" for amount in chance.gamma(2, 20, ROWS)],
        "country": np.array(["nl", "de", "fr", "us", "in"])[chance.integers(0, 5, ROWS)],
    }
    return pa.table([pa.array(columns[field.name]).cast(field.type) for field in SCHEMA], SCHEMA)

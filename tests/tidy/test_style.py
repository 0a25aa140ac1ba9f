"""Each check on text and calls sees what it is there to see."""

import pytest

from tests.tidy.rules import MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_LINE_LENGTH
from tests.tidy.source import Module
from tests.tidy.style import calls, file_names, machine_words, sizes, unknown_commands


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("x = 1\n" * MAX_FILE_LINES, []),
        ("x = 1\n" * (MAX_FILE_LINES + 1), ["file-lines"]),
        ("def f():\n" + "    x = 1\n" * (MAX_FUNCTION_LINES - 1), []),
        ("class A:\n    def f(self):\n" + "        x = 1\n" * MAX_FUNCTION_LINES, ["function-lines"]),
        ("#" * MAX_LINE_LENGTH + "  # type: ignore[x]  # noqa: A001", []),
        ("#" * (MAX_LINE_LENGTH + 1), ["line-length"]),
    ],
)
def test_sizes(text: str, rules: list[str]) -> None:
    assert [finding.rule for finding in sizes([Module("bench/x.py", text)])] == rules


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import time\ntime.time()", "clocks-and-chance"),
        ("import time as t\nnow = t.perf_counter_ns", "clocks-and-chance"),
        ("from time import monotonic\ndef f(x): return monotonic()", "clocks-and-chance"),
        ("from datetime import datetime, UTC\ndatetime.now(UTC)", "clocks-and-chance"),
        ("import datetime\ndatetime.date.today()", "clocks-and-chance"),
        ("import uuid\nuuid.uuid4().hex", "clocks-and-chance"),
        ("import random\nrandom.random()", "clocks-and-chance"),
        ("import numpy as np\nnp.random.default_rng(1)", "clocks-and-chance"),
        ("import time\nclass A:\n    def f(self, clock=time.time, *, sleep=time.sleep): clock()", None),
        ("import time\nclass A:\n    clock: object = time.time", None),
        ("import time\ndef now_ms():\n    'Doc.'\n    return time.time() * 1000\ndef f(now=now_ms): now()", None),
        ("import time\ndef now_ms(): return time.time()\nnow_ms()", "clocks-and-chance"),
        ("import time\ndef slow(x): return time.time()", "clocks-and-chance"),
        ("import uuid\nuuid.UUID(int=1)", None),
        ("open('x')", "files"),
        ("import os\nos.remove('x')", "files"),
        ("from os import path\npath.exists('x')", "files"),
        ("from pathlib import Path\nPath('x').read_text()", "files"),
        ("import os\nos.cpu_count()", None),
        ("store.open('x')", None),
        ("print('x')", "terminal"),
    ],
)
def test_calls_in_the_engine(text: str, rule: str | None) -> None:
    assert [finding.rule for finding in calls([Module("engine/plan/x.py", text)])] == ([rule] if rule else [])
    assert not list(calls([Module("tests/x.py", text)]))


def test_a_named_clock_is_a_clock_everywhere() -> None:
    clock = Module("engine/runtime/clock.py", "import time\ndef now_ms(): return time.time()")
    user = Module(
        "engine/plan/x.py", "from icebench.engine.runtime.clock import now_ms\ndef soon(): return now_ms() + 1\nsoon()"
    )
    assert [finding.subject for finding in calls([clock, user])] == ["engine/plan/x.py: engine.plan.x.soon"]


def test_storage_may_touch_files() -> None:
    assert not list(calls([Module("engine/storage/local.py", "import os\nos.remove('x')\nopen('x')")]))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import time\ntime.sleep(1)", 1),
        ("import numpy as np\nnp.random.rand(3)", 1),
        ("import numpy as np\nnp.random.default_rng(1)", 0),
        ("from random import Random, shuffle\ndef f(random: Random): Random(1)", 0),
        ("from random import shuffle\nshuffle(x)", 1),
        ("open('x')\nprint('x')", 0),
    ],
)
def test_calls_in_the_harness(text: str, count: int) -> None:
    assert len(list(calls([Module("bench/x.py", text)]))) == count


def test_file_names() -> None:
    bad = ["engine/utils.py", "bench/common/x.py", "tests/test_helpers.py"]
    assert [finding.subject for finding in file_names([*bad, "engine/spec/types.py", "docs/database.md"])] == bad


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("see /work/main/engine", 1),
        ("'/root/.cache'", 1),
        ("in /tmp/lab", 1),
        ("a=/home/jo/x b=/Users/jo", 2),
        ("https://files.pythonhosted.org/packages/x.whl", 1),
        ("https://repo1.maven.org/maven2", 1),
        ("/home/ann/x, the s3://bucket/work/table, ~/root/x and /workload/", 0),
        ("https://pypi.org/project/deflate", 0),
    ],
)
def test_machine_words(text: str, count: int) -> None:
    assert len(list(machine_words("README.md", text))) == count


def test_unknown_commands() -> None:
    text = "Run `make bench`, make no noise:\n\n```sh\nmake it so\nicebench run --quick\n```\n\n    icebench nothing\n"
    found = unknown_commands("README.md", text, {"bench"}, {"run"})
    assert [finding.subject for finding in found] == ["README.md: make it", "README.md: icebench nothing"]

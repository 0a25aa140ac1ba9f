"""An S3 server that answers late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.access import Access
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.processes.delayed_s3 import Delay, delayed, delayed_s3

DELAYS = {"near": Delay(seconds=0.0, bytes_per_second=1e12), "far": Delay(seconds=0.2, bytes_per_second=1e12)}


def test_an_answer_is_held_back_by_its_first_byte_and_its_length() -> None:
    assert Delay(seconds=0.03, bytes_per_second=100.0).of(7) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("method", "path", "waited"),
    [
        ("GET", "/far/a/b", [pytest.approx(0.2 + 5e-12)]),
        ("HEAD", "/far/a/b", [pytest.approx(0.2 + 5e-12)]),
        ("GET", "/far", [pytest.approx(0.2 + 5e-12)]),
        ("PUT", "/far/a/b", []),
        ("GET", "/elsewhere/far/b", []),
    ],
)
def test_reads_of_a_bucket_wait(method: str, path: str, waited: list[float]) -> None:
    slept: list[float] = []

    def inner(environment: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        yield b"abc"
        assert not slept
        yield b"de"

    application = delayed(inner, {"far": DELAYS["far"]}, slept.append)
    answer = application({"REQUEST_METHOD": method, "PATH_INFO": path}, lambda *_: None)
    assert (list(answer), slept) == ([b"abc", b"de"], waited)


@pytest.fixture(scope="module")
def server() -> Iterator[Access]:
    with delayed_s3(DELAYS) as access:
        yield access


def test_the_buckets_have_their_delays(server: Access) -> None:
    took = {}
    for bucket in DELAYS:
        catalog = icebench.load_catalog(f"s3://{bucket}/wh", properties=dict(server.options))
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": range(10)}))
        begun = time.perf_counter()
        assert table.scan().to_arrow().num_rows == 10
        took[bucket] = time.perf_counter() - begun
    assert took["far"] > 3 * 0.2


def test_it_is_nobodys_child_and_ends_with_its_context() -> None:
    """What an engine's processes take would be what this one takes, too."""

    def servers() -> set[int]:
        return {each.pid for each in psutil.process_iter(["cmdline"]) if one in " ".join(each.info["cmdline"] or ())}

    one = "bucket-of-its-own"
    with delayed_s3({one: DELAYS["near"]}):
        (pid,) = servers()
        assert pid not in {each.pid for each in psutil.Process().children(recursive=True)}
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=20)
    assert not servers()


def test_without_moto_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "moto.py").write_text("raise ImportError('no moto')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineMissing, match=r"pip install 'icebench\[s3-server\]'"), delayed_s3(DELAYS):
        pass

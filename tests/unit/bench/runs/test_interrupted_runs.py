"""Runs that are killed or stopped and go on say what an uninterrupted one says: nothing twice, nothing lost."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import random
import signal
import time
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icebench.bench.errors import ConfigError
from icebench.bench.execution.interruption import Interruption, Stopped
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.execution.run_lock import run_lock
from icebench.bench.runs.run import Finished, Surroundings, resume_run, run_experiment
from tests.unit.bench.execution.scripted import small_table
from tests.unit.bench.runs.scripted_run import FixedExecutor, attempt, figures, scripted_run

PAUSE_SECONDS = 0.002
EXAMPLES = 500 if "ICEBENCH_SOAK" in os.environ else 10


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_table(tmp_path_factory.mktemp("interrupted"))


def with_launch(where: Surroundings) -> Surroundings:
    """Surroundings whose further processes run in this one."""

    def launch(path: Path, process: int, lock: int) -> None:
        resume_run(path, where=where, process=process, lock=lock)

    return replace(where, launch=launch)


@pytest.fixture(scope="module")
def uninterrupted(location: str, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("whole")
    with scripted_run(folder, location, FixedExecutor()) as (experiment, where):
        return run_experiment(experiment, where=with_launch(where))


def test_the_scripted_run_has_all_that_there_is_to_lose(uninterrupted: Finished) -> None:
    cases, skipped, failures = figures(uninterrupted.run)
    assert isinstance(cases, dict)
    timed = [samples for _, samples in cases.values() if samples]
    assert len(timed) == 7
    assert all(len(samples) == 8 for samples in timed)
    assert skipped
    assert failures


@settings(max_examples=EXAMPLES)
@given(cuts=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3))
def test_a_run_that_was_killed_at_any_byte_goes_on(uninterrupted: Finished, location: str, cuts: list[float]) -> None:
    """A killed process leaves a beginning of what it would have written."""
    whole = uninterrupted.path.read_bytes()
    with TemporaryDirectory() as name, scripted_run(Path(name), location, FixedExecutor()) as (_, where):
        path = where.results / uninterrupted.path.name
        path.parent.mkdir()
        for cut in cuts:
            first_line = whole.index(b"\n") + 1
            path.write_bytes(whole[: first_line + int((len(whole) - first_line) * cut)])
            result = resume_run(path, where=with_launch(where))
            whole = path.read_bytes()
    assert result.run.complete
    assert figures(result.run) == figures(uninterrupted.run)


@settings(max_examples=EXAMPLES)
@given(moment=st.integers(1, 70))
def test_a_run_that_was_asked_to_stop_goes_on(uninterrupted: Finished, location: str, moment: int) -> None:
    interruption = Interruption(say=lambda _: None)
    executor = FixedExecutor()

    def stop_at_the_moment() -> None:
        # What is stopped itself may fail, and that is no failure of the run.
        interruption.asked = len(executor.ran) == moment
        if interruption.asked and moment % 2:
            raise RuntimeError("stopped in the midst")

    executor.pause = stop_at_the_moment
    with TemporaryDirectory() as name:
        folder = Path(name)
        with scripted_run(folder, location, executor, interruption=interruption) as (experiment, where):
            try:
                result = run_experiment(experiment, where=with_launch(where))
            except Stopped:
                assert len(executor.ran) <= moment + 1
                (path,) = where.results.iterdir()
                executor.pause = lambda: None
                interruption.asked = False
                result = resume_run(path, where=with_launch(where))
    assert figures(result.run) == figures(uninterrupted.run)


def _hold(path: Path) -> None:
    with run_lock(path):
        path.with_name("held").touch()
        time.sleep(600)


def test_a_run_is_written_by_one_process(uninterrupted: Finished, location: str, tmp_path: Path) -> None:
    whole = uninterrupted.path.read_bytes()
    with scripted_run(tmp_path, location, FixedExecutor()) as (_, where):
        path = where.results / "a.jsonl"
        path.parent.mkdir()
        path.write_bytes(whole[: len(whole) // 2])
        other = _started(_hold, path)
        while not path.with_name("held").exists():
            time.sleep(0.01)
        with pytest.raises(ConfigError, match=rf"a\.jsonl: process {other.pid} \(\S+\) is writing this run"):
            resume_run(path, where=where)
        assert path.read_bytes() == whole[: len(whole) // 2]
        other.kill()  # leaves no lock
        other.join()
        assert resume_run(path, where=with_launch(where)).run.complete


def test_a_run_holds_its_lock_to_its_end(location: str, tmp_path: Path) -> None:
    moments: list[bool] = []
    with scripted_run(tmp_path, location, FixedExecutor()) as (experiment, where):

        def is_refused() -> None:
            (path,) = where.results.iterdir()
            with path.open("rb") as file, pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            moments.append(True)

        executor = where.executor
        assert isinstance(executor, FixedExecutor)
        executor.pause = is_refused
        result = run_experiment(experiment, where=with_launch(where))
    assert len(moments) > 60
    with run_lock(result.path):
        pass


def _samples(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"line":"sample"') for path in (folder / "runs").glob("*"))


def _wait_for_samples(folder: Path, number: int, process: ForkServerProcess) -> None:
    while _samples(folder) < number:
        assert process.is_alive(), (folder / "said").read_text()
        time.sleep(0.005)


def test_ctrl_c_stops_the_command_after_the_sample_and_a_second_one_at_once(
    uninterrupted: Finished, location: str, tmp_path: Path
) -> None:
    process = _started(attempt, tmp_path, location, 0.1)  # seconds are left when five samples are there
    _wait_for_samples(tmp_path, 5, process)
    _signalled(process, signal.SIGINT)
    process.join()
    (path,) = (tmp_path / "runs").iterdir()
    advice = f"icebench: stopped; go on with: icebench run --resume {path}"
    said = (tmp_path / "said").read_text()
    assert (process.exitcode, said.splitlines()[-1]) == (130, advice)
    assert "stopping after this sample" in said
    there = _samples(tmp_path)

    process = _started(attempt, tmp_path, location, 600)
    for awaited in ("tpcds: warming up", "Ctrl-C again"):
        while awaited not in (tmp_path / "said").read_text().removeprefix(said):
            assert process.is_alive()
            time.sleep(0.005)
        _signalled(process, signal.SIGINT)
    process.join()
    assert (process.exitcode, (tmp_path / "said").read_text().splitlines()[-1]) == (130, advice)
    assert _samples(tmp_path) == there

    process = _started(attempt, tmp_path, location, 0)
    process.join()
    assert process.exitcode == 0
    assert figures(read_run(path)) == figures(uninterrupted.run)


def _interrupt_at_random(folder: Path, location: str, chosen: random.Random, seconds: float) -> Run:
    """What a run says that was killed or stopped twice, at random moments, and went on to its end."""
    for kind in chosen.choices([signal.SIGKILL, signal.SIGINT], k=2):
        process = _started(attempt, folder, location, PAUSE_SECONDS)
        while not (folder / "began").exists():
            assert process.is_alive(), (folder / "said").read_text()
            time.sleep(0.001)
        (folder / "began").unlink()
        time.sleep(chosen.uniform(0, seconds))
        _signalled(process, kind)
        process.join()
        if process.exitcode == 0 or _is_complete(folder):
            break  # it was faster
        assert process.exitcode == (130 if kind == signal.SIGINT else -signal.SIGKILL), (folder / "said").read_text()
    else:
        process = _started(attempt, folder, location, 0)
        process.join()
        assert process.exitcode == 0, (folder / "said").read_text()
    (path,) = (folder / "runs").iterdir()
    return read_run(path)


def _is_complete(folder: Path) -> bool:
    """Whether there is a run with its last line: its process may have been killed just after writing that."""
    paths = [path for path in (folder / "runs").glob("*.jsonl") if path.stat().st_size]
    return any(read_run(path, interrupted=True).complete for path in paths)


def _campaign(runs: int, uninterrupted: Finished, location: str, folder: Path) -> None:
    began = time.monotonic()
    whole = folder / "whole"
    whole.mkdir()
    process = _started(attempt, whole, location, PAUSE_SECONDS)
    process.join()
    seconds = time.monotonic() - began
    seed = int(os.environ.get("ICEBENCH_SEED", "1"))
    for number in range(runs):
        own = folder / str(number)
        own.mkdir()
        found = _interrupt_at_random(own, location, random.Random(f"{seed} {number}"), seconds)
        assert figures(found) == figures(uninterrupted.run), f"ICEBENCH_SEED={seed}, run {number}"


def test_runs_that_are_killed_go_on(uninterrupted: Finished, location: str, tmp_path: Path) -> None:
    _campaign(2, uninterrupted, location, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_runs_that_are_killed_go_on_200_times(uninterrupted: Finished, location: str, tmp_path: Path) -> None:
    _campaign(int(200 * float(os.environ.get("ICEBENCH_SOAK_SCALE", "1"))), uninterrupted, location, tmp_path)


def _signalled(process: ForkServerProcess, kind: signal.Signals) -> None:
    assert process.pid is not None
    if process.is_alive():
        os.kill(process.pid, kind)


def _started(target: object, *arguments: object) -> ForkServerProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.unit.bench.runs.test_interrupted_runs"])
    process = context.Process(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
    process.start()
    return process

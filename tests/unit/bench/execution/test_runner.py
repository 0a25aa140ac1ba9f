from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.execution import runner
from icebench.bench.execution.pace import Pace
from icebench.bench.execution.recorder import Recorder
from icebench.bench.execution.run_file import RunWriter, read_run
from icebench.bench.execution.runner import ClockExecutor, Runner, Work, is_steady
from icebench.bench.execution.trial import Timed, Trial
from icebench.bench.progress import silent
from icebench.bench.records.case import Case, Cost, Evidence, Sample
from tests.unit.bench.execution.scripted import Clock

NAMES = ("1", "2", "3", "4")


class Listening:
    """An executor that notes the order and gives each case the seconds in its engine's name."""

    def __init__(self, broken: str = "", falling: Mapping[str, list[float]] | None = None) -> None:
        self.order: list[str] = []
        self._broken = broken
        self._falling = falling or {}

    def run(self, trial: Trial) -> Cost:
        name = trial.case.engine
        self.order.append(name)
        if name == self._broken and self.order.count(name) == 3:
            raise OSError("gone")
        cpu = self._falling.get(name, [])
        seconds = cpu[min(self.order.count(name), len(cpu)) - 1] if cpu else float(name)
        return Cost(wall=float(name), cpu=seconds)


def case(name: str, **changes: str) -> Case:
    return replace(Case(workload="w", layout="l", engine=name, measurement="planning"), **changes)


def trial(name: str, **changes: str) -> Trial:
    return Trial(case=case(name, **changes), evidence=Evidence(), prepare=lambda: lambda: None)


def pace(repetitions: int = 3, warmups: int = 1, *, warm_seconds: float = 0, case_seconds: float = 1e9) -> Pace:
    return Pace(
        repetitions={"planning": repetitions},
        warmups={"planning": warmups},
        warm_seconds=warm_seconds,
        case_seconds=case_seconds,
    )


class Made:
    """A runner with its recorder; `samples` are by engine."""

    def __init__(self, writer: RunWriter, executor: Listening, pace: Pace, *, seed: int = 1, **more: object) -> None:
        self.recorder = Recorder(writer, versions=dict.fromkeys(NAMES, "1"))
        self.executor = executor
        self.runner = Runner(
            pace=pace,
            executor=executor,
            recorder=self.recorder,
            progress=silent,
            seed=seed,
            **more,  # type: ignore[arg-type]
        )

    def run(self, *trials: Trial) -> dict[str, list[Sample]]:
        for each in trials:
            self.recorder.case(each.case, each.evidence)
        self.runner.run("w", trials)
        return {found.case.engine: list(found.samples) for found in self.recorder.measured.values()}


def test_what_is_there_is_out_of_collection_before_each_pass_over_the_cases(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[str] = []

    @contextmanager
    def out_of_collection() -> Iterator[None]:
        seen.append("begin")
        try:
            yield
        finally:
            seen.append("end")

    class Seeing(Listening):
        def run(self, trial: Trial) -> Cost:
            seen.append(trial.case.engine)
            if seen.count("1") == 4:
                raise KeyboardInterrupt
            return super().run(trial)

    monkeypatch.setattr(runner, "out_of_collection", out_of_collection)
    monkeypatch.setattr(runner, "keep_out", partial(seen.append, "keep out"))
    with RunWriter(tmp_path / "run", run_id="r", environment={"id": "e"}) as writer, pytest.raises(KeyboardInterrupt):
        Made(writer, Seeing(), pace(5, 2)).run(trial("1"))
    # Two that are not recorded, a round, and the one that is interrupted.
    assert seen == ["begin", *["keep out", "1"] * 4, "end"]


@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 99))
def test_every_round_runs_every_case_once(repetitions: int, warmups: int, seed: int) -> None:
    executor = Listening()
    with (
        TemporaryDirectory() as folder,
        RunWriter(Path(folder, "run"), run_id="r", environment={"id": "e"}) as writer,
    ):
        made = Made(writer, executor, pace(repetitions, warmups), seed=seed)
        found = made.run(*map(trial, NAMES))
    # At least one unrecorded run each: nobody knows before how long one takes.
    unrecorded = max(1, warmups)
    rounds = [executor.order[i : i + 4] for i in range(0, len(executor.order), 4)]
    assert len(rounds) == repetitions + unrecorded
    assert all(sorted(names) == list(NAMES) for names in rounds)
    assert {name: [s.cost.wall for s in taken] for name, taken in found.items()} == {
        name: [float(name)] * repetitions for name in NAMES
    }
    assert all([s.round for s in taken] == list(range(repetitions)) for taken in found.values())


def test_layouts_take_turns_within_a_round(writer: RunWriter) -> None:
    order: list[str] = []

    class Noting(Listening):
        def run(self, trial: Trial) -> Cost:
            order.append(trial.case.layout)
            return super().run(trial)

    trials = [trial("1", layout=layout) for layout in ("a", "b", "c")]
    Made(writer, Noting(), pace(repetitions=10)).run(*trials)
    rounds = [tuple(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len(set(rounds)) > 2


def test_the_order_is_drawn_anew_and_follows_the_seed_and_the_process(tmp_path: Path) -> None:
    orders = []
    for number, (seed, process) in enumerate(((5, 0), (5, 0), (6, 0), (5, 1))):
        executor = Listening()
        with RunWriter(tmp_path / f"{number}", run_id="r", environment={"id": "e"}) as writer:
            Made(writer, executor, pace(20), seed=seed, process=process).run(*map(trial, NAMES))
        orders.append(tuple(executor.order))
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    rounds = {orders[0][i : i + 4] for i in range(0, 80, 4)}
    assert len(rounds) > 8
    assert {names[0] for names in rounds} == set(NAMES)


def test_slow_cases_stop_earlier_and_the_rounds_they_share_come_first(writer: RunWriter) -> None:
    executor = Listening()
    found = Made(writer, executor, pace(4, case_seconds=4)).run(*(trial(name) for name in ("1", "2", "3")))
    assert {name: len(taken) for name, taken in found.items()} == {"1": 4, "2": 2, "3": 1}
    assert sorted(executor.order[:3]) == sorted(executor.order[3:6]) == ["1", "2", "3"]
    assert sorted(executor.order[6:8]) == ["1", "2"]
    assert executor.order[8:] == ["1", "1"]


def test_where_one_run_outlasts_the_patience_none_is_unrecorded(writer: RunWriter) -> None:
    executor = Listening()
    slow = replace(trial("4"), seconds=4.0)
    found = Made(writer, executor, pace(5, warmups=2, warm_seconds=60, case_seconds=3)).run(slow)
    assert executor.order == ["4"]
    assert len(found["4"]) == 1


def test_a_case_runs_until_its_processor_time_falls_no_more(writer: RunWriter) -> None:
    executor = Listening(falling={"1": [5.0, 4.0, 2.0, 1.0, 0.95, 0.95], "2": [3.0, 3.0]})
    Made(writer, executor, pace(1, warm_seconds=100)).run(trial("1"), trial("2"))
    # The first is steady after its fifth run, the second after two; then one round.
    assert executor.order.count("1") == 5 + 1
    assert executor.order.count("2") == 2 + 1


def test_but_no_longer_than_it_may(writer: RunWriter) -> None:
    executor = Listening(falling={"1": [float(100 - 20 * i) for i in range(5)]})
    Made(writer, executor, pace(1, warm_seconds=3)).run(trial("1"))
    assert executor.order.count("1") == 3 + 1


def costs(*seconds: float, wall: float = 1.0) -> list[Cost]:
    return [Cost(wall=wall, cpu=each) for each in seconds]


@pytest.mark.parametrize(
    ("runs", "steady"),
    [
        (costs(1.0), False),
        (costs(1.0, 0.8), False),
        (costs(1.0, 0.95), True),
        (costs(1.0, 3.0), True),
        (costs(9.0, 1.0, 1.0), True),
        (costs(*[2.0] * 4, *[1.0] * 4, wall=0.03), False),
        (costs(*[2.0] * 4, *[1.0] * 8, wall=0.03), True),
        (costs(*[1.0] * 7, wall=0.03), False),
    ],
)
def test_windows_of_a_tenth_of_a_second_are_compared(runs: list[Cost], steady: bool) -> None:
    assert is_steady(runs) == steady


def test_a_case_that_raises_is_taken_out_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, run_id="r", environment={"id": "e"}) as writer:
        made = Made(writer, Listening(broken="2"), pace())
        found = made.run(*map(trial, NAMES))
    assert set(found) == {"1", "3", "4"}
    assert all(len(taken) == 3 for taken in found.values())
    assert [(f.engine, f.kind) for f in made.recorder.failures] == [("2", "OSError")]
    assert {m.case.engine for m in read_run(path).measured} == {"1", "3", "4"}


def test_samples_that_are_there_are_not_taken_again(writer: RunWriter) -> None:
    executor = Listening()
    taken = {
        case("1"): [Sample(process=0, round=r, cost=Cost(wall=1, cpu=1)) for r in (0, 2)],
        # The second attempt at the first of two processes has the number 2.
        case("2"): [Sample(process=2 * (r > 0), round=r, cost=Cost(wall=1, cpu=1)) for r in (0, 1, 2)],
        case("3"): [Sample(process=1, round=r, cost=Cost(wall=1, cpu=1)) for r in (0, 1, 2)],
    }
    made = Made(writer, executor, pace(), taken=taken, process=4, processes=2)
    found = made.run(*(trial(name) for name in ("1", "2", "3")))
    assert [s.place for s in found["1"]] == [(4, 1)]
    assert not found["2"]
    assert "2" not in executor.order
    assert [s.round for s in found["3"]] == [0, 1, 2]


def test_a_case_with_fewer_rounds_than_asked_is_over_too(writer: RunWriter) -> None:
    """Of "4", a run takes four seconds: within ten there are two rounds."""
    executor = Listening()
    taken = {
        case("4"): [Sample(process=0, round=r, cost=Cost(wall=4 + r, cpu=1)) for r in (0, 1)],
        case("3"): [Sample(process=0, round=r, cost=Cost(wall=3, cpu=1)) for r in (0, 1)],
    }
    made = Made(writer, executor, pace(5, case_seconds=10), taken=taken, process=1)
    found = made.run(trial("4"), trial("3"))
    assert "4" not in executor.order
    assert not found["4"]
    assert [s.place for s in found["3"]] == [(1, 2)]


def test_a_case_that_never_warms_up_has_as_many_rounds_as_its_budget_allows(writer: RunWriter) -> None:
    found = Made(writer, Listening(), pace(6, case_seconds=7)).run(trial("3", cache="fresh"), trial("2"))
    assert {name: len(taken) for name, taken in found.items()} == {"3": 2, "2": 3}


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("cache", ["fresh", "warm"])
def test_an_attempt_that_goes_on_ends_at_the_same_round(writer: RunWriter, cache: str, before: int) -> None:
    """Of samples of 5, 3, 4 and 5 seconds, 13 are time for four: the first alone, or runs before it, are not."""
    walls = [5.0, 3.0, 4.0, 5.0, 6.0, 6.0]

    class Recalling(Listening):
        def run(self, trial: Trial) -> Cost:
            self.order.append(trial.case.engine)
            warming = cache == "warm" and len(self.order) == 1
            return Cost(wall=1.0 if warming else next(left), cpu=1.0)

    left = iter(walls[before:])
    taken = {
        case("1", cache=cache): [Sample(process=0, round=r, cost=Cost(wall=walls[r], cpu=1)) for r in range(before)]
    }
    slow = trial("1", cache=cache)
    found = Made(writer, Recalling(), pace(6, case_seconds=13), taken=taken, process=1).run(slow)
    assert [s.round for s in found["1"]] == list(range(before, 4))


def test_the_machine_is_observed_in_every_round(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with RunWriter(path, run_id="r", environment={"id": "e"}) as writer:
        Made(writer, Listening(), pace(2)).run(trial("1"))
    rounds = read_run(path).rounds
    assert [(r["workload"], r["process"], r["round"]) for r in rounds] == [("w", 0, 0), ("w", 0, 1)]
    assert all(r["load"] >= 0 for r in rounds)


def test_two_trials_of_one_case_are_a_mistake(writer: RunWriter) -> None:
    made = Made(writer, Listening(), pace())
    with pytest.raises(ValueError, match="two trials are of one case"):
        made.runner.run("w", [trial("1"), trial("1")])


class NoTree:
    """Costs nothing."""

    def start(self, *, in_children: bool) -> None: ...

    def stop(self) -> tuple[float, None]:
        return 0.0, None


def executor_of(clock: Clock, settle: Callable[[], object] = lambda: None) -> ClockExecutor:
    return ClockExecutor(clock, settle, NoTree())  # type: ignore[arg-type]


def timed_by(prepare: Callable[[], Timed]) -> Trial:
    return Trial(case=case("1"), evidence=Evidence(), prepare=prepare)


def test_only_the_thunk_is_timed() -> None:
    clock, happened = Clock(), []

    def run() -> None:
        happened.append("run")
        clock.pass_(0.5)

    def prepare() -> Callable[[], object]:
        happened.append("prepare")
        clock.pass_(10)
        return run

    def settle() -> None:
        happened.append("settle")
        clock.pass_(100)

    assert executor_of(clock, settle).run(timed_by(prepare)).wall == 0.5
    assert happened == ["prepare", "settle", "run"]


def test_a_result_is_freed_after_the_clock_has_stopped() -> None:
    clock = Clock()

    class Heavy:
        def __del__(self) -> None:
            clock.pass_(7)

    assert executor_of(clock).run(timed_by(lambda: Heavy)).wall == 0
    assert clock.now == 7


def test_work_of_another_process_costs_what_that_says() -> None:
    clock = Clock()

    class Answer:
        def cost(self, wall: float) -> Cost:
            clock.pass_(50)
            return Cost(wall=wall, cpu=9, memory=8)

    def run() -> Answer:
        clock.pass_(2)
        return Answer()

    assert executor_of(clock).run(timed_by(lambda: run)) == Cost(wall=2, cpu=9, memory=8)


def test_rounds_are_reported(writer: RunWriter) -> None:
    reported: list[tuple[str, int, int, float]] = []
    made = Made(writer, Listening(), pace(2, warmups=3))
    made.runner.progress = lambda _, detail, done, total, share=None: reported.append(
        (detail, done, total, share or 0.0)
    )
    made.run(trial("1"), trial("2"))
    assert [each[:3] for each in reported] == [
        ("warming up 2 of 2 cases", 0, 2),
        ("round 1 of 2, 2 cases", 1, 2),
        ("round 2 of 2, 2 cases", 2, 2),
    ]
    assert [each[3] for each in reported] == pytest.approx([0, 4 / 5, 1], abs=0.01)


def test_the_work_that_is_done_is_weighed_by_what_cases_take() -> None:
    """One of ten seconds that is not warm, and one of a second that has run all its rounds, of 50 + 5 seconds."""
    slow, fast = case("slow"), case("fast")
    work = Work(pace=pace(5, warm_seconds=30), least={slow: None, fast: None})
    assert work.share([slow, fast], [slow, fast]) == 0
    work.ran(fast, Cost(wall=2, cpu=2), recorded=False)
    # What has not run is taken to be as slow as what has: 4 + 10 seconds each, of which 2 are over.
    assert work.share([slow, fast], [slow, fast]) == pytest.approx(2 / 28, rel=0.05)
    work.ran(slow, Cost(wall=10, cpu=10), recorded=False)
    assert work.share([slow, fast], [slow]) == pytest.approx(12 / (12 + 10 + 60), rel=0.05)
    for _ in range(5):
        work.ran(fast, Cost(wall=2, cpu=2), recorded=True)
    assert work.share([slow, fast], [slow]) == pytest.approx(22 / (22 + 10 + 50), rel=0.05)
    assert work.share([fast], []) == 1

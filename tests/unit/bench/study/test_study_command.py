"""`icebench study`: what is measured, what is kept, and what is written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

from icebench.bench.cli import study as command
from icebench.bench.cli.context import Context
from icebench.bench.cli.places import Places
from icebench.bench.execution.interruption import STOPPED, Stopped
from icebench.bench.execution.run_file import Run, RunWriter, read_run
from icebench.bench.experiment import Experiment, load_experiment
from icebench.bench.report.charts import DotChart, DotPanel, DotRow, Point
from icebench.bench.report.model import Table, plain
from icebench.bench.runs.estimate import Estimate
from icebench.bench.study import questions
from icebench.bench.study.kept import compressed, kept_file, kept_run
from icebench.bench.study.page import Page
from icebench.bench.study.questions import Question
from tests.unit.bench.cli.test_main import exit_code
from tests.unit.bench.report.sample_run import ENVIRONMENT, FAILED, sample_run

DEFINITION = """
name = "study-{name}"
layouts = ["unpartitioned", "sorted"]
engines = ["icebench"]
measurements = ["planning", "pruning"]
repetitions = 6
warmups = 0
warm_seconds = 0
[workload]
kind = "tpcds"
scale = 0.01
[build]
repetitions = 0
[filters]
one_item = "ss_item_sk = 77"
"""
PROGRAM = """
import signal, sys
from pathlib import Path
from icebench.bench.cli import study
from icebench.bench.cli.main import main
from icebench.bench.study import questions
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background ignores
questions.DEFINITIONS = Path(sys.argv[1])
questions.QUESTIONS = study.QUESTIONS = {"tiny": questions.Question("tiny", "Is a small table small?")}
main(sys.argv[2:])
"""
TINY = Question("tiny", "Is a small table small?")
OTHER = Question("other", "Is another one?")
KNOWN = {each.name: each for each in (TINY, OTHER)}


def page_of(run: Run) -> Page:
    """An answer that says which run it is of."""
    chart = DotChart(
        caption="c",
        axis="s",
        log=False,
        series=("icebench",),
        panels=(DotPanel(title="t", rows=(DotRow(label="r", points=(Point(series="icebench", value=1.0),)),)),),
    )
    rows = tuple((plain(f"{each.case.layout}/{each.case.filter}"),) for each in run.measured)
    tables = (Table(title="Cases", columns=("Case",), rows=rows),)
    return Page(answer=f"So says {run.run_id}.", chart=chart, tables=tables)


@dataclass
class Study:
    """The study of two small questions, whose runs are made and not measured. `calls` has what ran, in order."""

    folder: Path
    calls: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    refuses: bool = False

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def pages(self) -> Path:
        return self.folder / "pages"

    def define(self, question: Question, text: str = DEFINITION) -> None:
        question.definition.parent.mkdir(parents=True, exist_ok=True)
        question.definition.write_text(text.format(name=question.name), encoding="utf-8")

    def call(self, *arguments: object) -> int:
        return exit_code("--results", self.results, "study", "-o", self.pages, *arguments)

    def write(self, experiment: Experiment, *, ends: bool = True, fails: bool = False) -> Path:
        """A run of the experiment; each is a second younger than the one before."""
        folder = self.results / "runs"
        number = len(list(folder.glob("*"))) + 1
        path = folder / f"2026010{number}T000000Z-{experiment.name}.jsonl"
        environment = {**ENVIRONMENT, "experiment": experiment.name, "digest": experiment.digest}
        with RunWriter(path, run_id=path.stem, environment=environment) as writer:
            for measured in sample_run().measured[:3]:
                writer.case(measured)
            if fails:
                writer.add(FAILED)
            if ends:
                writer.close(failed=fails)
        os.utime(path, (number, number))
        return path

    def start(self, context: Context, *arguments: str) -> int:
        """In place of the process that measures: its exit code."""
        if arguments[0] == "--resume":
            return self.resume(Path(arguments[1]))
        experiment = load_experiment(arguments[0])
        self.calls.append(f"run {experiment.name}")
        self.write(experiment, fails=experiment.name in self.failing)
        return int(experiment.name in self.failing)

    def resume(self, path: Path) -> int:
        self.calls.append(f"resume {path.stem}")
        if self.refuses:
            return 2
        before = read_run(path, interrupted=True)
        fails = before.experiment in self.failing
        with RunWriter(path, run_id=before.run_id, environment=None, known=before.order) as writer:
            if fails:
                writer.add(FAILED)
            writer.close(failed=fails)
        return int(fails)

    def keep(self, question: Question) -> None:
        """Have a run of it kept."""
        path = kept_file(self.results, question)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compressed(self.write(question.experiment())))

    def kept(self, question: Question = TINY) -> str | None:
        """The id of the run that is kept."""
        run = kept_run(self.results, question)
        return None if run is None else run.run_id

    def files(self) -> set[str]:
        """All files below the directories of results and pages."""
        found = (path for top in (self.results, self.pages) for path in top.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)) for path in found}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)  # where tables would be made
    monkeypatch.setattr(questions, "DEFINITIONS", tmp_path / "datasets")
    for name in KNOWN:
        answers = ModuleType(f"icebench.bench.study.answers.{name}")
        answers.__dict__["answer"] = page_of
        monkeypatch.setitem(sys.modules, answers.__name__, answers)
    for module in (questions, command):
        monkeypatch.setattr(module, "QUESTIONS", KNOWN)
    made = Study(tmp_path)
    made.define(TINY)
    made.define(OTHER)
    return made


@pytest.fixture
def scripted(study: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The study, where nothing is measured."""
    monkeypatch.setattr(command, "_run", study.start)
    return study


def test_a_question_is_measured_kept_and_answered(study: Study) -> None:
    """A real run; then one that lost its last samples and its end goes on from there."""
    assert study.call("tiny") == 0
    (path,) = (study.results / "runs").iterdir()
    whole = read_run(path)
    assert study.kept() == whole.run_id
    assert (study.folder / "datasets" / "cache").is_dir()
    written = (study.pages / "tiny.md").read_text(encoding="utf-8")
    assert f"**So says {whole.run_id}.**" in written
    assert "| sorted/one_item |" in written

    kept_file(study.results, TINY).unlink()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) * 3 // 4]) + b'{"line":"samp')
    assert study.call("tiny") == 0
    assert list((study.results / "runs").iterdir()) == [path]
    found = kept_run(study.results, TINY)
    assert found is not None
    assert found.complete
    assert [each.case for each in found.measured] == [each.case for each in whole.measured]
    assert [len(each.samples) for each in found.measured] == [len(each.samples) for each in whole.measured]
    assert {sample.process for each in found.measured for sample in each.samples} == {0, 1}


def test_a_kept_run_of_the_same_definition_is_not_made_again(
    scripted: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripted.call() == 0
    assert scripted.calls == ["run study-tiny", "run study-other"]
    for run in (scripted.results / "runs").iterdir():
        run.unlink()
    capsys.readouterr()
    assert scripted.call() == 0
    assert len(scripted.calls) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [f"{name}: kept in {scripted.results}/study/{name}.jsonl.xz" for name in KNOWN]


def test_only_questions_that_are_named_are_measured_and_all_kept_ones_are_written(scripted: Study) -> None:
    assert scripted.call("other") == 0
    assert scripted.calls == ["run study-other"]
    assert {path.name for path in scripted.pages.iterdir()} == {"other.md", "other.svg", "index.md"}
    assert scripted.call("tiny") == 0
    assert scripted.calls == ["run study-other", "run study-tiny"]
    assert {path.stem for path in scripted.pages.glob("*.md")} == {"tiny", "other", "index"}


def test_questions_are_measured_in_the_order_of_the_pages(scripted: Study) -> None:
    assert scripted.call("other", "tiny", "other") == 0
    assert scripted.calls == ["run study-tiny", "run study-other"]
    index = (scripted.pages / "index.md").read_text(encoding="utf-8")
    assert index.index("(tiny.md)") < index.index("(other.md)")


def test_a_changed_definition_is_measured_again(scripted: Study) -> None:
    scripted.call("tiny")
    before = scripted.kept()
    scripted.define(TINY, DEFINITION.replace("ss_item_sk = 77", "ss_item_sk = 78"))
    assert scripted.call("tiny") == 0
    assert scripted.calls == ["run study-tiny"] * 2
    assert scripted.kept() != before
    assert scripted.call("tiny") == 0
    assert len(scripted.calls) == 2


def test_again_measures_what_is_kept(scripted: Study) -> None:
    scripted.call("tiny")
    before = scripted.kept()
    assert scripted.call("tiny", "--again") == 0
    assert scripted.calls == ["run study-tiny"] * 2
    assert scripted.kept() != before


def test_again_does_not_keep_a_run_that_ended_before(scripted: Study) -> None:
    scripted.write(TINY.experiment())
    assert scripted.call("tiny", "--again") == 0
    assert scripted.calls == ["run study-tiny"]


def test_an_interrupted_run_goes_on(scripted: Study) -> None:
    path = scripted.write(TINY.experiment(), ends=False)
    path.write_bytes(path.read_bytes() + b'{"line":"samp')
    assert scripted.call("tiny") == 0
    assert scripted.calls == [f"resume {path.stem}"]
    assert scripted.kept() == path.stem


def test_an_interrupted_run_of_another_definition_does_not_go_on(scripted: Study) -> None:
    scripted.write(OTHER.experiment(), ends=False)
    assert scripted.call("tiny") == 0
    assert scripted.calls == ["run study-tiny"]


def test_the_latest_of_several_interrupted_runs_goes_on(scripted: Study) -> None:
    _, latest = (scripted.write(TINY.experiment(), ends=False) for _ in range(2))
    assert scripted.call("tiny") == 0
    assert scripted.calls == [f"resume {latest.stem}"]


def test_an_interrupted_run_that_cannot_go_on_is_made_from_its_beginning(scripted: Study) -> None:
    path = scripted.write(TINY.experiment(), ends=False)
    scripted.refuses = True
    assert scripted.call("tiny") == 0
    assert scripted.calls == [f"resume {path.stem}", "run study-tiny"]
    assert scripted.kept() not in {None, path.stem}


def test_an_interrupted_run_that_fails_when_it_goes_on_is_not_kept(scripted: Study) -> None:
    scripted.write(TINY.experiment(), ends=False)
    scripted.failing = {"study-tiny"}
    assert scripted.call("tiny") == 1
    assert scripted.kept() is None


def test_a_run_that_ended_and_was_not_kept_is_kept_without_measuring(scripted: Study) -> None:
    path = scripted.write(TINY.experiment())
    assert scripted.call("tiny") == 0
    assert (scripted.calls, scripted.kept()) == ([], path.stem)


def test_a_run_that_failed_or_cannot_be_read_is_not_kept_instead(scripted: Study) -> None:
    scripted.write(TINY.experiment(), fails=True)
    (scripted.results / "runs" / "damaged.jsonl").write_text("no run\n", encoding="utf-8")
    assert scripted.call("tiny") == 0
    assert scripted.calls == ["run study-tiny"]


def test_a_failed_run_is_not_kept_and_is_named(scripted: Study, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.failing = {"study-tiny"}
    assert scripted.call() == 1
    assert capsys.readouterr().err.splitlines()[-1] == "failed, and not kept: tiny"
    assert scripted.kept() is None
    assert scripted.kept(OTHER) is not None
    assert {path.name for path in scripted.pages.iterdir()} == {"other.md", "other.svg", "index.md"}


def test_a_failed_run_leaves_what_was_kept_before(scripted: Study) -> None:
    scripted.call("tiny")
    before = scripted.kept()
    scripted.failing = {"study-tiny"}
    assert scripted.call("tiny", "--again") == 1
    assert scripted.kept() == before


def test_pages_are_written_without_measuring(scripted: Study, capsys: pytest.CaptureFixture[str]) -> None:
    scripted.keep(TINY)
    before = scripted.files()
    assert scripted.call("--pages") == 0
    assert scripted.calls == []
    assert scripted.files() - before == {"pages/tiny.md", "pages/tiny.svg", "pages/index.md"}
    assert f"pages: {scripted.pages}/index.md" in capsys.readouterr().out.splitlines()


def test_pages_are_written_of_the_runs_that_are_kept(scripted: Study) -> None:
    scripted.call("tiny")
    before = scripted.kept()
    scripted.define(TINY, DEFINITION.replace("77", "78"))
    scripted.write(TINY.experiment())
    assert scripted.call("--pages") == 0
    assert f"**So says {before}.**" in (scripted.pages / "tiny.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("more", [(), ("--pages",), ("--again",)])
def test_a_dry_run_says_what_is_needed_and_writes_nothing(
    scripted: Study, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    scripted.keep(TINY)
    before = scripted.files()
    assert scripted.call("--dry-run", *more) == 0
    assert scripted.calls == []
    assert scripted.files() == before
    said = capsys.readouterr().err.splitlines()
    needed = [line.partition(":")[0] for line in said if " cases, about " in line]
    assert needed == {(): ["other"], ("--pages",): [], ("--again",): ["tiny", "other"]}[more]


def test_all_of_a_long_study_is_confirmed_at_once(scripted: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, float, bool]] = []

    def confirm(context: Context, needed: Estimate, *, yes: bool) -> None:
        asked.append((needed.cases, needed.seconds, yes))

    half = Estimate(cases=3, seconds=2000.0, size=10, basis="b")
    monkeypatch.setattr(command, "confirm", confirm)
    monkeypatch.setattr(command, "estimate", lambda *_: half)
    assert scripted.call("--yes") == 0
    assert scripted.call("tiny", "--again") == 0
    assert scripted.call("tiny") == 0
    assert asked == [(6, 4000.0, True), (3, 2000.0, False)]
    kept_file(scripted.results, TINY).unlink()
    assert scripted.call("tiny") == 0  # its run has ended: nothing is measured
    assert len(asked) == 2


def test_a_study_that_is_stopped_goes_on_as_it_says(
    scripted: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(context: Context, *arguments: str) -> int:
        if arguments[0] == str(OTHER.definition):
            scripted.write(OTHER.experiment(), ends=False)
            raise Stopped("stopped")
        return scripted.start(context, *arguments)

    monkeypatch.setattr(command, "_run", stopped)
    scripted.keep(TINY)
    assert scripted.call("--again") == 130
    assert "'icebench study other --again' goes on with it" in capsys.readouterr().err
    assert scripted.kept() is not None
    assert scripted.kept(OTHER) is None
    assert scripted.call("other", "--again") == 0
    assert [call.partition(" ")[0] for call in scripted.calls] == ["run", "resume"]
    assert scripted.kept(OTHER) is not None


def test_a_run_that_did_not_begin_is_a_failure_and_no_former_one_is_kept_in_its_place(
    scripted: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Java is missing, for example, or the disk is full."""
    assert scripted.call("tiny") == 0
    kept = kept_file(scripted.results, TINY)
    written = kept.stat().st_mtime_ns
    monkeypatch.setattr(command, "_run", lambda *_: 2)
    assert scripted.call("tiny", "--again") == 1
    assert "failed, and not kept: tiny" in capsys.readouterr().err
    assert kept.stat().st_mtime_ns == written


def test_pages_of_nothing_are_refused(scripted: Study, capsys: pytest.CaptureFixture[str]) -> None:
    """An index without questions would replace the one that is there."""
    assert scripted.call("--pages") == 2
    assert "no run is kept" in capsys.readouterr().err
    assert scripted.files() == set()


def test_an_unknown_question_is_one_line_with_the_known_ones(
    scripted: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripted.call("other", "tinny") == 2
    said = "icebench: study: unknown question 'tinny' (did you mean 'tiny'?); known: other, tiny\n"
    assert capsys.readouterr().err == said
    assert scripted.files() == set()


def test_a_damaged_kept_run_is_one_line_and_again_replaces_it(
    scripted: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted.call("tiny")
    path = kept_file(scripted.results, TINY)
    path.write_bytes(path.read_bytes()[:-9])
    capsys.readouterr()
    assert scripted.call("tiny") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"icebench: {path}: ")
    assert "'icebench study tiny --again' measures it again" in said
    assert said.count("\n") == 1
    assert scripted.call("tiny", "--again") == 0
    assert scripted.kept() is not None


def test_a_kept_run_that_lacks_what_its_page_needs_is_one_line(
    scripted: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of an earlier definition; the other question is measured all the same."""

    def lacking(run: Run) -> Page:
        raise ValueError("the run has no record of planning")

    scripted.keep(TINY)
    monkeypatch.setitem(sys.modules["icebench.bench.study.answers.tiny"].__dict__, "answer", lacking)
    assert scripted.call("other") == 2
    assert scripted.kept(OTHER) is not None
    (said,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("icebench: "))
    assert "tiny" in said
    assert "the run has no record of planning" in said


@pytest.mark.parametrize("code", [0, 1, 2, STOPPED])
def test_what_measures_is_in_a_group_of_its_own_and_says_how_it_ended(
    study: Study, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A terminal sends Ctrl-C to a whole group: to the process that measures it would be the second one, which stops
    within a sample. One that was stopped by itself has stopped the study."""
    program = study.folder / "python"
    script = f"#!{sys.executable}\nimport os\nopen('group', 'w').write(str(os.getpgid(0)))\nraise SystemExit({code})\n"
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    context = Context(Places(study.results))
    if code == STOPPED:
        with pytest.raises(Stopped):
            command._run(context, "a.toml")
    else:
        assert command._run(context, "a.toml") == code
    assert int((study.folder / "group").read_text(encoding="utf-8")) != os.getpgid(0)


def test_ctrl_c_stops_the_process_that_measures_after_its_sample(study: Study) -> None:
    """As a user does it, with real processes: what was measured is kept, and goes on at the next call."""
    study.define(TINY, DEFINITION.replace("repetitions = 6", "repetitions = 500", 1))
    words = [sys.executable, "-c", PROGRAM, str(study.folder / "datasets")]
    words += ["--results", str(study.results), "study", "tiny", "-o", str(study.pages)]
    runs = study.results / "runs"
    with subprocess.Popen(words, cwd=study.folder, stderr=subprocess.PIPE, text=True) as started:
        while not any(b'"sample"' in path.read_bytes() for path in runs.glob("*.jsonl")):
            assert started.poll() is None
            time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        said = started.communicate(timeout=120)[1]
    assert started.returncode == STOPPED, said
    assert "stopped; 'icebench study tiny' goes on with it" in said
    (path,) = runs.iterdir()
    found = read_run(path)
    assert not found.complete
    assert any(each.samples for each in found.measured)
    assert study.kept() is None


@pytest.mark.parametrize("name", ["a[b]c", "x" * 200])
def test_where_the_pages_are_is_printed_as_it_is(
    scripted: Study, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    scripted.keep(TINY)
    assert scripted.call("--pages", "-o", scripted.folder / name) == 0
    assert f"pages: {scripted.folder}/{name}/index.md\n" in capsys.readouterr().out


def test_every_question_has_a_definition_and_limits() -> None:
    for name, question in questions.QUESTIONS.items():
        assert question.name == name
        assert question.text.endswith("?")
        assert question.limits
        assert question.experiment().name == f"study-{name}"

"""The questions of the study, as ``questions.toml`` has them in the order of its pages."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, cast

from icebench.bench.definition import DEFINITIONS, one_of
from icebench.bench.experiment import Experiment, load_experiment

if TYPE_CHECKING:
    from icebench.bench.execution.run_file import Run
    from icebench.bench.study.page import Page


@dataclass(frozen=True)
class Question:
    """One page.

    Args:
        name: Of its definition in ``datasets/study/``, of its run, of its page and of the module that answers it.
        text: The question.
        limits: Where its answer does not hold, whatever a run shows; Markdown.
    """

    name: str
    text: str
    limits: tuple[str, ...] = ()

    @property
    def definition(self) -> Path:
        """The file of the experiment that answers it."""
        return DEFINITIONS / "study" / f"{self.name}.toml"

    def experiment(self) -> Experiment:
        """The experiment that answers it."""
        return load_experiment(self.definition)

    def page(self, run: Run) -> Page:
        """The answer that a run gives.

        Raises:
            LookupError: The run lacks what the page is made of; the message names the question.
        """
        try:
            return cast("Page", import_module(f"icebench.bench.study.answers.{self.name}").answer(run))
        except (ValueError, LookupError, StopIteration) as error:
            raise LookupError(f"{self.name}: its run lacks what its page is made of ({error})") from error


def _load() -> dict[str, Question]:
    text = files("icebench.bench.study").joinpath("questions.toml").read_text(encoding="utf-8")
    return {name: Question(name, each["question"], tuple(each["limits"])) for name, each in tomllib.loads(text).items()}


QUESTIONS = _load()


def chosen(names: tuple[str, ...]) -> list[Question]:
    """Those of these names, all of none, in the order of the pages.

    Raises:
        ConfigError: No such question.
    """
    for name in names:
        one_of(name, QUESTIONS, "question", "study")
    return [question for question in QUESTIONS.values() if not names or question.name in names]

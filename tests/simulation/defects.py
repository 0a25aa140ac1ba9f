"""Defects that the engine had, put back one at a time to see whether the simulator finds them.

`defects.toml` has them as data: texts of the engine's source and what stood there instead. A process that is asked by
the environment loads the engine with one of them; no file is changed. Imports nothing of the engine.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

VARIABLE = "ICEBENCH_SIMULATED_DEFECT"
_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]


@dataclass(frozen=True)
class Defect:
    """A defect.

    Args:
        name: Short.
        what: What it does.
        edits: File -> pairs of texts: as it is, as it was.
        seed: Where to begin, so that a test finds it soon: the first from 0 on, among schedules that could.
    """

    name: str
    what: str
    edits: Mapping[str, Sequence[tuple[str, str]]]
    seed: int

    def applied(self, file: str, source: str) -> str:
        """The source with the defect; ValueError where the place is not there once."""
        for now, then in self.edits[file]:
            if source.count(now) != 1:
                raise ValueError(f"defect {self.name}: {file} has {source.count(now)} times: {now}")
            source = source.replace(now, then)
        return source


def defects() -> list[Defect]:
    """All that are known."""
    found = tomllib.loads((_HERE / "defects.toml").read_text(encoding="utf-8"))["defect"]
    return [
        Defect(
            name=each["name"],
            what=each["what"],
            seed=each["seed"],
            edits={
                file: [(e["now"], e["then"]) for e in each["edit"] if e["file"] == file]
                for file in {e["file"] for e in each["edit"]}
            },
        )
        for each in found
    ]


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, defect: Defect) -> None:
        self._defect = defect

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        file = f"{name.removeprefix('icebench.').replace('.', '/')}.py"
        if file not in self._defect.edits:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _Loader(name, str(_ROOT / file), self._defect, file)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, defect: Defect, file: str) -> None:
        super().__init__(name, path)
        self._defect = defect
        self._file = file

    def get_code(self, fullname: str):
        source = Path(self.path).read_text(encoding="utf-8")
        return compile(self._defect.applied(self._file, source), self.path, "exec")


def plant_from_environment() -> None:
    """Load the engine with the defect that the environment names."""
    name = os.environ.get(VARIABLE)
    if name is None:
        return
    if "icebench.engine.commit" in sys.modules:
        raise ValueError(f"{VARIABLE} is set, and the engine is loaded already")
    (defect,) = (each for each in defects() if each.name == name)
    sys.meta_path.insert(0, _Finder(defect))

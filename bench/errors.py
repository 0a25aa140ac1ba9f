"""Every error that the harness raises on purpose.

::

    BenchError                  what every caller may catch
    ├── ConfigError             an experiment definition or an argument is wrong
    ├── DatasetFailed           a dataset could not be built, or what is on disk is not what was built
    ├── EngineFailed            an engine under test failed at something that it says it can do
    ├── Disagreement            engines disagree with each other or with the ground truth: nothing they measured counts
    │   └── WrongAnswer         one engine's rows or files are not the true ones: its time does not count
    └── CorruptRecords          a results file is damaged, or mixes runs

`str(error)` is one line for people: what is wrong, where, and what to do.
"""

from __future__ import annotations


class BenchError(Exception):
    """Base of all deliberate errors of the harness. `str()` is one line for people."""


class ConfigError(BenchError):
    """An experiment definition or an argument is wrong.

    Args:
        reason: What is wrong, and what would be right.
        path: The place in the definition, for example ``"layouts[1]"``.
    """

    def __init__(self, reason: str, *, path: str | None = None) -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path}: {reason}" if path else reason)


class DatasetFailed(BenchError):
    """A dataset could not be built, or what is on disk is not what was built."""


class EngineFailed(BenchError):
    """An engine under test failed at something that it says it can do."""


class Disagreement(BenchError):
    """Engines disagree with each other or with the ground truth."""


class WrongAnswer(Disagreement):
    """An engine delivers other rows than the true ones, or plans without a file that has some of them."""


class CorruptRecords(BenchError):
    """A results file is damaged, or mixes runs.

    Args:
        reason: What is wrong.
        location: ``file`` or ``file:line``.
    """

    def __init__(self, reason: str, *, location: str) -> None:
        self.reason = reason
        self.location = location
        super().__init__(f"{location}: {reason}")

"""Policies: what maintenance may do and use, from TOML."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from icebench.bench.costs.object_store import GIGABYTE, PROFILES, Profile
from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError

ACTIONS = (
    "compaction",
    "deletes",
    "position_deletes",
    "equality_deletes",
    "dangling_deletes",
    "manifests",
    "clustering",
    "snapshots",
    "orphans",
    "table_statistics",
    "partition_statistics",
)
_OFF = ("orphans", "table_statistics", "partition_statistics")
"""Actions that a policy has to ask for."""
DEFAULT_POLICY = Path(__file__).with_name("default_policy.toml")
_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a pass may use; infinite where nothing is said."""

    size_bytes: float = math.inf
    seconds: float = math.inf
    dollars: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A policy; default_policy.toml explains the keys.

    Args:
        reads: Reads of the whole table between two commits.
        reads_per_day: Of the whole table; in place of `reads` if it is not None.
        budget: What a pass may use.
        storage: Where the client stands to the store.
        bytes_per_second: That a rewrite reads and writes.
        dollars_per_hour: Of the machine.
        actions: Those that may be done.
        changed_share: Statistics are due where a greater share of the rows has changed since they were computed.
    """

    reads: float
    reads_per_day: float | None
    budget: Budget
    storage: Profile
    bytes_per_second: float
    dollars_per_hour: float
    actions: frozenset[str] = field(default_factory=frozenset)
    changed_share: float = 0.1

    @classmethod
    def load(cls, path: Path | None = None) -> Policy:
        """Read a policy's file; the default one for None.

        Raises:
            ConfigError: It cannot be read, or says something that is unknown or wrong.
        """
        source = path or DEFAULT_POLICY
        try:
            values = tomllib.loads(source.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:  # ValueErrors of TOML, of UTF-8, and of numbers with too many digits
            raise ConfigError(f"cannot be read: {error}", path=str(source)) from error
        return cls.parse(values)

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Policy:
        """From parsed TOML; raises ConfigError, which names the place."""
        root = Definition(values)
        budget, costs, actions, statistics = (root.table(key) for key in ("budget", "costs", "actions", "statistics"))
        found = cls(
            reads=root.number("reads", 1, least=0),
            reads_per_day=root.number("reads_per_day", least=0) if "reads_per_day" in values else None,
            budget=Budget(
                size_bytes=budget.number("bytes", math.inf, least=0, infinite=True),
                seconds=budget.number("seconds", math.inf, least=0, infinite=True),
                dollars=budget.number("dollars", math.inf, least=0, infinite=True),
            ),
            storage=PROFILES[costs.text("storage", "same-region", known=PROFILES)],
            bytes_per_second=costs.number("bytes_per_second", 50e6, least=0, above=True),
            dollars_per_hour=costs.number("dollars_per_hour", 0.40, least=0),
            actions=frozenset(name for name in ACTIONS if actions.flag(name, default=name not in _OFF)),
            changed_share=statistics.number("changed_share", 0.1, least=0),
        )
        for each in (root, budget, costs, actions, statistics):
            each.done()
        return found

    def to_json(self) -> dict[str, Any]:
        """Everything that it says, as JSON values; a budget without its infinite parts."""
        budget = {name: value for name, value in asdict(self.budget).items() if value < math.inf}
        return {**asdict(self), "budget": budget, "actions": sorted(self.actions)}

    def seconds(self, work_bytes: float) -> float:
        """About how long so much is read and written."""
        return work_bytes / self.bytes_per_second

    def dollars(self, work_bytes: float) -> float:
        """About what that costs: the machine, and bytes that leave the store's region, which is half of them."""
        moved = work_bytes / 2 / GIGABYTE * self.storage.dollars_per_gigabyte_out
        return self.seconds(work_bytes) * self.dollars_per_hour / _HOUR + moved

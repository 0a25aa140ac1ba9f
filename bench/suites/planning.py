"""Planning latency: from an opened table to the list of files."""

from __future__ import annotations

from .prepared import ALL, Prepared, Quick, experiment, opened


class Planning(Quick):
    """Cold: the first plan of a fresh handle. Warm: another plan of the same handle."""

    params = (list(experiment().layouts), [ALL, *experiment().filters])
    param_names = ("layout", "filter")
    number = 1
    rounds = 2
    repeat = (10, 50, 5.0)
    warmup_time = 0.2

    def setup(self, prepared: Prepared, layout: str, filter: str) -> None:
        """A handle that has planned once, and a fresh one."""
        self.warm = opened("icebench", prepared.tables[layout], experiment().filters.get(filter))
        self.cold = self.warm.afresh()

    def time_cold(self, prepared: Prepared, layout: str, filter: str) -> None:
        """The first plan of a fresh handle."""
        self.cold.engine.plan(self.cold.handle, self.cold.filter)

    def time_warm(self, prepared: Prepared, layout: str, filter: str) -> None:
        """Another plan of the same handle; the warm-up makes the first."""
        self.warm.engine.plan(self.warm.handle, self.warm.filter)

"""Scans: all rows of the decimal columns, and the same data files with and without deletes."""

from __future__ import annotations

from .prepared import OWN_ENGINES, Prepared, Quick, experiment, opened, variants


class Decimals(Quick):
    """Every row of the decimal columns delivered and dropped, from an opened table."""

    params = (list(experiment().layouts), list(OWN_ENGINES))
    param_names = ("layout", "engine")
    number = 1
    rounds = 1
    repeat = (3, 10, 10.0)
    # Long enough for the JVM to have compiled what it runs.
    warmup_time = 2.0

    def setup(self, prepared: Prepared, layout: str, engine: str) -> None:
        """An opened table."""
        self.table = opened(engine, prepared.tables[layout], None)

    def time_scan(self, prepared: Prepared, layout: str, engine: str) -> None:
        """Plan and read."""
        self.table.engine.scan(self.table.handle, prepared.decimal_columns, self.table.filter)


class Deletes(Quick):
    """A scan of the same data files with each variant of deletes; the difference to `none` is what deletes cost."""

    params = (list(experiment().layouts), variants(), list(OWN_ENGINES))
    param_names = ("layout", "deleted", "engine")
    number = 1
    rounds = 1
    repeat = (3, 10, 10.0)
    warmup_time = 2.0

    def setup(self, prepared: Prepared, layout: str, deleted: str, engine: str) -> None:
        """An opened table."""
        self.table = opened(engine, prepared.with_deletes[layout, deleted], None)

    def time_scan(self, prepared: Prepared, layout: str, deleted: str, engine: str) -> None:
        """Plan, load the deletes, read, and drop the deleted rows."""
        self.table.engine.scan(self.table.handle, experiment().deletes.columns, self.table.filter)

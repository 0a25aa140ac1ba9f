"""A name that is given to another table while a change of the first one is on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import icebench
from icebench.errors import ValidationFailed

SCHEMA = pa.schema([pa.field("id", pa.int64())])
CATALOGS = {"sql": "sqlite:///{0}/catalog.db", "directory": "{0}/wh"}
CHANGES: dict[str, Callable[[icebench.Table, int], object]] = {
    "append": lambda table, n: table.append(numbers(4)),
    "delete": lambda table, n: table.delete(f"id = {n}", "merge-on-read"),
    "rewrite": lambda table, n: table.maintenance.rewrite_data_files(rewrite_all=True),
    "property": lambda table, n: table.set_properties({"a": str(n)}),
}
FILES = ("append", "delete", "rewrite")


def numbers(start: int, count: int = 4) -> pa.Table:
    return pa.table({"id": range(start, start + count)}, schema=SCHEMA)


@pytest.fixture(params=CATALOGS)
def catalogs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[icebench.Catalog, icebench.Catalog]]:
    """Ours and theirs."""
    address = CATALOGS[request.param].format(tmp_path)
    warehouse = f"{tmp_path}/wh" if request.param == "sql" else None
    made = [icebench.load_catalog(address, warehouse=warehouse) for _ in "ab"]
    yield made[0], made[1]
    for catalog in made:
        catalog.close()


# A property is set on the table that is loaded: nothing was prepared before.
@pytest.mark.parametrize(("change", "method"), [*product(FILES, ("load_state", "commit")), ("property", "commit")])
def test_the_change_is_not_made_to_the_other_table(
    change: str, method: str, catalogs: tuple[icebench.Catalog, icebench.Catalog]
) -> None:
    ours, theirs = catalogs
    table = ours.create_table("db.t", SCHEMA)
    table.append(numbers(0))
    # Before the last call of that method: all is prepared by then.
    calls = count_of_calls(table, method, CHANGES[change])

    def give_the_name_away() -> None:
        theirs.drop_table("db.t")
        theirs.create_table("db.t", SCHEMA).append(numbers(100))

    with acting_before(table, method, calls, give_the_name_away), pytest.raises(ValidationFailed, match="the name now"):
        CHANGES[change](table, 1)
    other = theirs.load_table("db.t")
    assert sorted(other.scan().to_arrow()["id"].to_pylist()) == [100, 101, 102, 103]
    assert len(other.snapshots) == 1
    assert "a" not in other.metadata.properties
    table.refresh().append(numbers(104))
    assert table.scan().count() == 8


def count_of_calls(table: icebench.Table, method: str, change: Callable[[icebench.Table, int], object]) -> int:
    """How many calls the change makes."""
    with acting_before(table, method, 0, lambda: None) as calls:
        change(table, 0)
    return len(calls)


class acting_before:  # noqa: N801 - reads as a clause
    """Somebody acts before the catalog is called for the n-th time."""

    def __init__(self, table: icebench.Table, method: str, number: int, act: Callable[[], object]) -> None:
        committer = table._committer
        assert committer is not None
        inner = getattr(committer, method)
        self._calls: list[object] = []

        def called(*arguments: Any) -> Any:
            self._calls.append(None)
            if len(self._calls) == number:
                act()
            return inner(*arguments)

        self._patch = patch.object(committer, method, called)

    def __enter__(self) -> list[object]:
        self._patch.start()
        return self._calls

    def __exit__(self, *_: object) -> None:
        self._patch.stop()

"""What a transaction depends on that read rows and changed none."""

from __future__ import annotations

import pytest

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.read import Read
from icebench.engine.commit.changes.references import CreateRef
from icebench.engine.commit.conflicts import Validation
from icebench.engine.spec.requirements import AssertRefSnapshotId
from tests.unit.engine.commit.tables import data_file, world


@pytest.mark.parametrize(
    ("branch", "heads"),
    [("main", {"main": 101}), ("b", {"b": 101}), ("new", {"new": None, "main": 101})],
)
def test_a_catalog_that_knows_no_base_gets_what_was_read(branch: str, heads: dict[str, int | None]) -> None:
    w = world()
    w.transaction().commit([Append(data_files=[data_file("a")]), CreateRef(name="b", type="branch")])
    staged = Read(validation=Validation(starting_snapshot_id=101), branch=branch).stage(w.metadata, w.staging())
    assert (staged.updates, staged.files) == ((), frozenset())
    found = [r for r in staged.requirements if isinstance(r, AssertRefSnapshotId)]
    assert {r.ref: r.snapshot_id for r in found} == heads


def test_an_empty_table_may_be_read() -> None:
    w = world()
    staged = Read(validation=Validation(starting_snapshot_id=None)).stage(w.metadata, w.staging())
    assert AssertRefSnapshotId("main", None) in staged.requirements

"""The life of a table in a catalog of Nessie, whose server another project wrote than Iceberg's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest

import engine
from engine.errors import Invalid, Unsupported
from engine.spec.sorting import SortField, SortOrder
from engine.spec.transforms import Identity
from engine.spec.types import INT
from tests.services.s3_server import S3Server

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", None]})


@pytest.fixture(params=["own keys", "remote signing"])
def catalog(request: pytest.FixtureRequest, nessie_address: str, s3_server: S3Server) -> Iterator[engine.Catalog]:
    properties = {"header.X-Iceberg-Access-Delegation": "remote-signing"}
    if request.param == "own keys":
        properties = s3_server.properties
    with closing(engine.load_catalog(nessie_address, properties=properties)) as made:
        yield made


def test_a_table_evolves_and_its_rows_change(catalog: engine.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.delete.mode": "merge-on-read"})
    table.append(ROWS)
    table.update_schema(lambda change: change.add_column("x", INT))
    table.update_schema(lambda change: change.rename_column("x", "y"))
    table.update_spec(lambda change: change.add_field("id", "bucket[4]"))
    table.replace_sort_order(SortOrder((SortField(source_ids=(1,), transform=Identity()),)))
    table.append(pa.table({"id": [4, 5], "name": ["d", "e"], "y": pa.array([1, 2], pa.int32())}))
    table.delete("id = 4")
    table.upsert(
        pa.table({"id": [1, 6], "name": ["z", "f"], "y": pa.array([7, 8], pa.int32())}), on=["id"], mode="copy-on-write"
    )
    metadata = catalog.load_table("db.t").metadata
    assert (metadata.current_schema_id, metadata.default_spec_id, metadata.default_sort_order_id) == (2, 1, 1)
    found = catalog.load_table("db.t").scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["name"], row["y"]) for row in found] == [
        (1, "z", 7),
        (2, "b", None),
        (3, None, None),
        (5, "e", 2),
        (6, "f", 8),
    ]


def test_what_nessie_would_pass_over_is_refused(catalog: engine.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    for refused in (
        lambda: table.append(ROWS, branch="audit"),
        lambda: table.append(ROWS, wap_id="w1"),
        lambda: table.create_tag("v1"),
        lambda: table.create_branch("audit"),
        lambda: table.upgrade_format(3),
    ):
        with pytest.raises(Unsupported, match="Nessie"):
            refused()
    for kept in (table.maintenance.remove_orphan_files, table.maintenance.expire_snapshots):
        with pytest.raises(Invalid, match=r"gc\.enabled"):
            kept()
    assert table.refresh().scan().count() == 3
    assert table.maintenance.profile().files.records == 3

"""Copies of local tables in S3."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.access import Access
from icebench.bench.tables.store_copies import copied_to
from icebench.errors import Invalid
from tests.services.s3_server import S3Server

ROWS = pa.table(
    {"id": range(300), "day": [date(2024, 1 + n % 3, 1) for n in range(300)], "v": [n / 7 for n in range(300)]}
)


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_copy_is_planned_and_read_as_its_source(
    tmp_path: Path, s3_server: S3Server, bucket: str, version: str
) -> None:
    """With its partitions, deletes and former schemas, and from the store alone."""
    catalog = icebench.load_catalog(str(tmp_path))
    properties = {"format-version": version}
    source = catalog.create_table("db.t", ROWS.schema, partition_spec=[("day", "month")], properties=properties)
    source.append(ROWS.slice(0, 200))
    source.append(ROWS.slice(200))
    source.delete("id = 3", mode="copy-on-write" if version == "1" else "merge-on-read")
    source = source.update_schema(lambda schema: schema.drop_column("v").add_column("w", icebench.DOUBLE))
    options = s3_server.properties
    location = copied_to(source.metadata_location, f"s3://{bucket}/a/b", Access("s3", options))
    copy = icebench.load_table(location, properties=options)
    assert (copy.location, copy.schema(), copy.spec) == (f"s3://{bucket}/a/b", source.schema(), source.spec)
    filters = (None, "day = date '2024-02-01'", "id >= 250")
    expected = [source.scan(filter=filter).to_arrow().sort_by("id") for filter in filters]
    planned = [len(source.scan(filter=filter).plan().files) for filter in filters]
    for path in tmp_path.rglob("*.*"):
        path.unlink()
    assert [copy.scan(filter=filter).to_arrow().sort_by("id") for filter in filters] == expected
    assert [len(copy.scan(filter=filter).plan().files) for filter in filters] == planned
    assert expected[0].num_rows == 299


def test_files_elsewhere_are_refused(tmp_path: Path, s3_server: S3Server, bucket: str) -> None:
    catalog = icebench.load_catalog(str(tmp_path / "wh"))
    source = catalog.create_table("db.t", ROWS.schema, properties={"write.data.path": str(tmp_path / "elsewhere")})
    source.append(ROWS)
    with pytest.raises(Invalid, match="elsewhere"):
        copied_to(source.metadata_location, f"s3://{bucket}/a/c", Access("s3", s3_server.properties))

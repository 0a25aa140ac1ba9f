import re
import uuid
from dataclasses import replace

import pyarrow as pa
import pytest

from icebench.engine.write.locations import DataLocations, FileNames
from icebench.errors import Unsupported
from tests.unit.engine.write.metadata_for_writes import metadata_of


def test_names_have_writer_and_count() -> None:
    names = FileNames(operation_id=uuid.UUID(int=1), partition_id=12, task_id=345)
    own = "00012-345-00000000-0000-0000-0000-000000000001"
    assert names.name(6) == f"{own}-00006.parquet"
    assert names.name(7, suffix="-deletes", extension="puffin") == f"{own}-00007-deletes.puffin"
    assert FileNames().name(1) != FileNames().name(1)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
def test_the_writer_of_a_file_is_known_by_its_name(hashed: bool, partitioned: bool) -> None:
    names = FileNames(operation_id=uuid.UUID(int=1), partition_id=12, task_id=345)
    locations = DataLocations(root="s3://b/t/data", hashed=hashed, partitioned=partitioned)
    assert names.writer_of(locations.location("", names.name(6))) == 12
    assert names.writer_of(locations.location("p=1", names.name(7, suffix="-deletes"))) == 12
    assert replace(names, operation_id=uuid.UUID(int=2)).writer_of(locations.location("", names.name(6))) is None


@pytest.mark.parametrize(
    ("locations", "expected"),
    [
        (DataLocations(root="s3://b/t/data"), "s3://b/t/data/p=1/f.parquet"),
        (
            DataLocations(root="s3://b/t/data", hashed=True),
            r"s3://b/t/data/[01]{4}/[01]{4}/[01]{4}/[01]{8}/p=1/f.parquet",
        ),
        (
            DataLocations(root="s3://b/t/data", hashed=True, partitioned=False),
            r"s3://b/t/data/[01]{4}/[01]{4}/[01]{4}/[01]{8}-f.parquet",
        ),
    ],
)
def test_places(locations: DataLocations, expected: str) -> None:

    assert re.fullmatch(expected, locations.location("p=1", "f.parquet"))
    assert locations.location("p=1", "f.parquet") == locations.location("p=1", "f.parquet")


def test_a_class_of_java_that_chooses_locations_is_refused_by_name() -> None:
    """As in Iceberg Java where the class is missing: readers may rely on where its files are."""
    asked = metadata_of(pa.schema([("a", pa.int64())]), properties={"write.location-provider.impl": "com.example.P"})
    with pytest.raises(Unsupported, match=r"write.location-provider.impl='com.example.P'"):
        DataLocations.of(asked)


def test_an_unpartitioned_file_lies_at_the_root() -> None:
    assert DataLocations(root="/t/data").location("", "f.parquet") == "/t/data/f.parquet"


@pytest.mark.parametrize(
    ("name", "directories"),
    [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ],
)
def test_hashes_are_those_of_other_writers(name: str, directories: str) -> None:
    # As PyIceberg's tests of its object-store location provider have them.
    assert DataLocations(root="/r", hashed=True).location("", name) == f"/r/{directories}/{name}"


def test_a_table_may_say_where_its_files_go() -> None:
    metadata = metadata_of(pa.schema([("id", pa.int64())]))
    assert DataLocations.of(metadata).root == f"{metadata.location}/data"
    assert DataLocations.of(replace(metadata, properties={"write.data.path": "s3://b/else/"})).root == "s3://b/else"

"""Tables on a real S3 API: what users do, in how many requests, and the messages for bad input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.storage.resolve import store_for
from icebench.engine.storage.store import WriteUncertain
from icebench.errors import EngineError, StorageFailed, Unsupported
from tests.services.s3_server import SECRET, S3Server
from tests.services.scripted_http import Reply, Seen, scripted_server

ROWS = pa.table({"id": range(100), "day": [f"d{n // 50}" for n in range(100)]})
ALWAYS = "2999-01-01T00:00:00Z"


@pytest.fixture(params=["sql", "directory"])
def catalog(
    request: pytest.FixtureRequest, s3_server: S3Server, bucket: str, tmp_path: Path
) -> Iterator[icebench.Catalog]:
    warehouse = f"s3://{bucket}/wh"
    address = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sql" else warehouse
    where = warehouse if request.param == "sql" else None
    with closing(icebench.load_catalog(address, warehouse=where, properties=s3_server.properties)) as made:
        yield made


def test_a_tables_life(catalog: icebench.Catalog, s3_server: S3Server) -> None:
    table = catalog.create_table("db.t", ROWS.schema, partition_spec=[("day", "identity")])
    other = catalog.load_table("db.t")
    table.append(ROWS)
    other.append(ROWS.slice(0, 10))
    table.refresh()
    assert table.scan().count() == 110
    s3_server.requests.clear()
    scan = table.scan(filter="day = 'd1'")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == list(range(50, 100))
    assert {path.partition("/day=")[2][:2] for _, path, _ in s3_server.requests if ".parquet" in path} == {"d1"}
    assert table.delete("id < 5", mode="merge-on-read") is not None
    assert table.scan().count() == 100
    stray = f"{table.location}/data/stray.parquet"
    table.store.write(stray, b"x")
    assert stray in table.maintenance.remove_orphan_files(older_than=ALWAYS, dry_run=False).locations
    assert not table.store.exists(stray)
    assert len(table.maintenance.expire_snapshots(older_than=ALWAYS, dry_run=False).snapshot_ids) == 2
    assert catalog.load_table("db.t").scan().count() == 100
    catalog.drop_table("db.t")
    assert not catalog.table_exists("db.t")


def test_writers_of_one_directory_lose_nothing(s3_server: S3Server, bucket: str) -> None:
    def append(number: int) -> None:
        # A client of its own, as of another process.
        catalog = icebench.load_catalog(f"s3://{bucket}/wh", properties=s3_server.properties)
        catalog.load_table("db.t").append(ROWS.slice(number, 1))

    first = icebench.load_catalog(f"s3://{bucket}/wh", properties=s3_server.properties)
    first.create_table("db.t", ROWS.schema, properties={"commit.retry.num-retries": "50"})
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(append, range(5)))
    assert sorted(first.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == list(range(5))


@pytest.mark.parametrize(("size", "requests"), [(0, 1), (1000, 1), (5_000_000, 1), (11_000_000, 4)])
def test_a_small_file_is_one_put(s3_server: S3Server, bucket: str, size: int, requests: int) -> None:
    store = store_for(f"s3://{bucket}", s3_server.properties)
    s3_server.requests.clear()
    store.write(f"s3://{bucket}/file", b"x" * size, overwrite=True)
    methods = [method for method, _, _ in s3_server.requests]
    assert len(methods) == requests
    assert store.size(f"s3://{bucket}/file") == size


_Failing = Callable[[str, dict[str, str]], object]
_USES: dict[str, _Failing] = {
    "open": lambda at, given: icebench.load_table(f"{at}/db/t", properties=given),
    "create": lambda at, given: icebench.load_catalog(at, properties=given).create_table("db.t", ROWS.schema),
    "list": lambda at, given: icebench.load_catalog(at, properties=given).list_namespaces(),
}


def failure(use: _Failing, location: str, properties: dict[str, str]) -> str:
    with pytest.raises(EngineError) as caught:
        use(location, {"s3.retry.num-retries": "0", **properties})
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in text
    return text


@pytest.mark.parametrize("use", [_USES["open"], _USES["create"]])
def test_a_missing_bucket_is_reported_in_one_line(s3_server: S3Server, use: _Failing) -> None:
    text = failure(use, "s3://no-such-bucket/wh", s3_server.properties)
    assert "no-such-bucket" in text


_REFUSALS = {
    "wrong key": (403, "InvalidAccessKeyId", {}),
    "wrong secret": (403, "SignatureDoesNotMatch", {}),
    "expired": (400, "ExpiredToken", {}),
    "wrong region": (301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-1"}),
}


@pytest.mark.parametrize("refusal", _REFUSALS.values(), ids=_REFUSALS)
def test_a_refusal_is_reported_in_one_line(refusal: tuple[int, str, dict[str, str]]) -> None:
    status, code, headers = refusal
    body = f"<Error><Code>{code}</Code><Message>said by\nthe server</Message></Error>"

    def answer(seen: Seen) -> Reply:
        return Reply(status=status, body=body, headers={"Content-Type": "application/xml", **headers})

    with scripted_server(answer) as server:
        given = S3Server(server.address).properties
        for use in _USES.values():
            failure(use, "s3://bucket/wh", given)


def test_a_key_with_an_empty_segment_is_refused(s3_server: S3Server, bucket: str) -> None:
    assert "empty segment" in failure(_USES["open"], f"s3://{bucket}//wh", s3_server.properties)
    with closing(icebench.load_catalog(f"s3://{bucket}//wh", properties=s3_server.properties)) as catalog:
        # What is recorded is written without.
        assert catalog.create_table("db.t", ROWS.schema).location == f"s3://{bucket}/wh/db/t"


def put_by(answer: Callable[[Seen], Reply]) -> None:
    with scripted_server(answer) as server:
        own = {**S3Server(server.address).properties, "s3.retry.num-retries": "0"}
        store = store_for("s3://bucket/a", own, is_catalog=True)
        store.write("s3://bucket/a", b"1")


def test_a_server_that_ignores_conditions_is_refused_before_anything_is_written() -> None:
    paths = set()

    def answer(seen: Seen) -> Reply:
        paths.add(seen.path)
        return Reply(body=b"")

    with pytest.raises(Unsupported, match="If-None-Match"):
        put_by(answer)
    assert paths == {"/bucket/.icebench-conditional-put"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(cut_at=-1), WriteUncertain),
        (Reply(status=500, body=b""), WriteUncertain),
        (Reply(status=403, body=b""), StorageFailed),
    ],
)
def test_where_every_answer_is_lost_it_stays_open(reply: Reply, kind: type[EngineError]) -> None:
    def answer(seen: Seen) -> Reply:
        return Reply(status=412, body=b"") if "icebench" in seen.path else reply

    with pytest.raises(kind, match="s3://bucket/a"):
        put_by(answer)

"""Credentials that a REST catalog lends: whose they are, when they end, and what goes on after that."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from icebench.engine.catalog.rest import LOAD_CREDENTIALS, LOAD_TABLE, RestCatalog
from icebench.engine.catalog.rest_stores import TableStores, Vended
from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.rest import LoadedTable, table_from_json
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.signed_s3 import S3Request, SignedS3Store
from icebench.engine.storage.store import Store
from icebench.errors import EngineError, Invalid, StorageFailed, Unsupported
from tests.services.scripted_http import Reply, ScriptedServer, Seen, scripted_server
from tests.unit.engine.catalog.rest_answers import CONFIG, error, loaded, opened
from tests.unit.engine.commit.tables import metadata

NAME = ("db", "t")
TABLE = "GET /v1/namespaces/db/tables/t"
ROOT = "s3://lake/db/t"
FILE = f"{ROOT}/data/f.parquet"
S3 = replace(metadata(), location=ROOT)
HOUR = 3_600_000
ENDS_AT = "s3.session-token-expires-at-ms"


def given(**more: object) -> LoadedTable:
    return table_from_json(JsonObject(loaded(S3, **more)))


def refuses() -> Vended:
    raise StorageFailed("the catalog is away")


def learned(stores: TableStores, **more: object) -> TableStores:
    stores.learn(given(**more), subject="table db.t", renew=refuses, signer=unsigned)
    return stores


def unsigned(_: Mapping[str, str]) -> Callable[[S3Request], S3Request]:
    return lambda request: request


def still() -> int:
    return 0


class TestOptions:
    def test_a_credential_of_the_longest_fitting_prefix_wins(self) -> None:
        credentials = [
            {"prefix": "s3://lake", "config": {"s3.access-key-id": "wide"}},
            {"prefix": "s3://lake/db/", "config": {"s3.access-key-id": "narrow"}},
            {"prefix": "s3://other", "config": {"s3.access-key-id": "other"}},
        ]
        config = {"s3.access-key-id": "config", "client.region": "eu-west-1"}
        vended = Vended.of(given(config=config, **{"storage-credentials": credentials}))
        places = ("lake/db/t", "lake/x", "other/y", "z")
        chosen = {place: vended.options(f"s3://{place}")["s3.access-key-id"] for place in places}
        assert chosen == {"lake/db/t": "narrow", "lake/x": "wide", "other/y": "other", "z": "config"}
        assert vended.options(FILE)["client.region"] == "eu-west-1"

    def test_the_first_end_counts_of_what_is_in_use(self) -> None:
        ends = [{"prefix": p, "config": {ENDS_AT: at}} for p, at in (("s3://a", "70"), ("s3://b", "60"))]
        assert Vended.of(given(**{"storage-credentials": ends})).ends_at_ms == 60
        # What is configured is covered by every credential.
        assert Vended.of(given(config={ENDS_AT: "5"}, **{"storage-credentials": ends})).ends_at_ms == 60
        assert Vended({"gcs.oauth2.token-expires-at": "7"}).ends_at_ms == 7
        assert Vended({"adls.sas-token-expires-at-ms.account": "8"}).ends_at_ms == 8
        assert Vended({ENDS_AT: "soon"}).ends_at_ms is None

    def test_only_the_tables_own_files_take_its_options(self) -> None:
        secret = {"s3.secret-access-key": "x", "s3.access-key-id": "y", "s3.region": "eu-west-1"}
        stores = learned(TableStores({"s3.region": "us-east-1"}, still), config=secret)
        own = stores(FILE)
        assert stores(ROOT) is own
        assert stores("s3://lake/db/t2") is not own
        assert isinstance(stores("/elsewhere"), LocalStore)

    def test_every_handle_takes_new_options_and_the_same_ones_keep_the_client(self) -> None:
        secret = {"s3.secret-access-key": "x", "s3.access-key-id": "y", "s3.region": "eu-west-1"}
        stores = learned(TableStores({}, still), config=secret)
        own = stores(ROOT)
        client = own.at(FILE)  # type: ignore[attr-defined]
        learned(stores, config=secret)
        assert own.at(FILE) is client  # type: ignore[attr-defined]
        learned(stores, config={**secret, "s3.session-token": "z"})
        assert own.at(FILE) is not client  # type: ignore[attr-defined]
        assert stores(ROOT) is own

    def test_secrets_are_not_shown(self) -> None:
        credentials = [{"prefix": "s3://lake", "config": {"s3.secret-access-key": "hunter2"}}]
        table = given(config={"token": "hunter2"}, **{"storage-credentials": credentials})
        assert "hunter2" not in repr(table)
        assert "hunter2" not in repr(Vended.of(table))

    def test_a_scan_that_only_the_server_can_plan_is_refused(self) -> None:
        with pytest.raises(Unsupported, match=r"table db\.t: .*plan"):
            learned(TableStores({}, still), config={"scan-planning-mode": "server"})

    @pytest.mark.parametrize("asked", [{"s3.remote-signing-enabled": "TRUE"}, {"s3.signer": "S3V4RestSigner"}])
    @pytest.mark.parametrize("own", ["s3.access-key-id", "client.access-key-id", "s3.role-arn", None])
    def test_the_server_signs_where_the_client_cannot(self, asked: dict[str, str], own: str | None) -> None:
        given = {own: "x", own.replace("access-key-id", "secret-access-key"): "x"} if own else {}
        vended = learned(TableStores({"s3.region": "eu-west-1", **given}, still), config=asked)(FILE)
        store = vended.at(FILE)  # type: ignore[attr-defined]
        assert isinstance(store, SignedS3Store) is (own is None)

    def test_other_signers_and_values_are_refused(self) -> None:
        with pytest.raises(Unsupported, match=r"s3\.signer='Mine': there is S3V4RestSigner"):
            learned(TableStores({"s3.signer": "Mine"}, still))
        with pytest.raises(Invalid, match=r"s3\.remote-signing-enabled='yes'"):
            learned(TableStores({"s3.remote-signing-enabled": "yes"}, still))


@dataclass
class Lake:
    """An S3 service with one object, and what a catalog says of it: the key that it lends, and until when."""

    bucket: ScriptedServer
    now_ms: int = 1_000 * HOUR
    key: str = "K1"
    ends_at_ms: int | None = 1_001 * HOUR
    is_away: bool = False

    def options(self) -> dict[str, str]:
        ends = {} if self.ends_at_ms is None else {ENDS_AT: str(self.ends_at_ms)}
        secret = {"s3.access-key-id": self.key, "s3.secret-access-key": "x", "s3.session-token": "s"}
        place = {"s3.endpoint": self.bucket.address, "s3.region": "eu-west-1"}
        return {**secret, **place, **ends}

    def keys(self) -> list[str]:
        """Of the requests to S3 since the last call."""
        seen = [request.headers["authorization"] for request in self.bucket.seen]
        self.bucket.seen.clear()
        return [found.group(1) for text in seen if (found := re.search(r"Credential=(\w+)/", text))]

    def lend(self, key: str, ends_at_ms: int | None) -> None:
        self.key, self.ends_at_ms = key, ends_at_ms


UPLOAD = "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"


def object_storage(content: bytes) -> Callable[[Seen], Reply]:
    def answer(seen: Seen) -> Reply:
        if seen.method == "PUT":
            return Reply(headers={"ETag": '"e"'})
        if seen.method == "POST":
            body = "<CompleteMultipartUploadResult/>" if "uploadId" in seen.query else UPLOAD
            return Reply(body=body, headers={"Content-Type": "application/xml"})
        wanted = re.match(r"bytes=(\d+)-(\d+)", seen.headers.get("range", ""))
        if wanted is None:
            return Reply(body=content, headers={"ETag": '"e"', "Content-Type": "application/octet-stream"})
        part = content[int(wanted[1]) : int(wanted[2]) + 1]
        return Reply(status=206, body=part, headers={"Content-Type": "application/octet-stream"})

    return answer


ENDPOINTS = {
    "with the credentials endpoint": [str(LOAD_TABLE), str(LOAD_CREDENTIALS)],
    "by loading the table": [str(LOAD_TABLE)],
}


@contextmanager
def lake(endpoints: list[str], place: str = "credentials") -> Iterator[tuple[Lake, RestCatalog, list[Seen]]]:
    """A catalog with one table, whose keys are in its `config` or in its `storage-credentials`."""
    with scripted_server(object_storage(b"0123456789")) as bucket:
        made = Lake(bucket)

        def answer(seen: Seen) -> Reply:
            if seen.path == "/v1/config":
                return Reply(body={**CONFIG, "endpoints": endpoints})
            if made.is_away:
                return error(404, "NoSuchTableException")
            credentials = {"storage-credentials": [{"prefix": "s3://lake", "config": made.options()}]}
            if seen.path.endswith("/credentials"):
                return Reply(body=credentials)
            if seen.headers.get("if-none-match") == '"1"':
                return Reply(status=304)
            given: Mapping[str, object] = credentials if place == "credentials" else {"config": made.options()}
            return Reply(body=loaded(S3, **given), headers={"ETag": '"1"'})

        with opened({}, answer=answer) as o:
            o.session.now_ms = lambda: made.now_ms
            yield made, RestCatalog(o.session), o.server.seen


def read(store: Store) -> bytes:
    return store.read(FILE, 2, 3)


@pytest.mark.parametrize("way", ENDPOINTS)
@pytest.mark.parametrize("place", ["credentials", "config"])
def test_a_store_renews_its_credentials_before_they_end(way: str, place: str) -> None:
    with lake(ENDPOINTS[way], place) as (made, catalog, seen):
        catalog.load_state(NAME)
        store = catalog.store_at(ROOT)
        asked = len(seen)
        assert read(store) == b"234"
        made.now_ms += HOUR - 300_001
        read(store)
        assert set(made.keys()) == {"K1"}
        assert len(seen) == asked
        made.lend("K2", made.now_ms + HOUR)
        made.now_ms += 1
        for _ in range(3):
            assert read(store) == b"234"
        assert set(made.keys()) == {"K2"}
        assert len(seen) == asked + 1
        assert seen[-1].path.endswith("/credentials") == (way == "with the credentials endpoint")


def test_a_table_that_is_not_sent_again_keeps_no_credentials_that_end() -> None:
    with lake(ENDPOINTS["by loading the table"]) as (made, catalog, seen):
        first = catalog.load_state(NAME)
        store = catalog.store_at(ROOT)
        assert catalog.load_state(NAME) is first
        assert seen[-1].headers["if-none-match"] == '"1"'
        made.now_ms += HOUR
        made.lend("K2", made.now_ms + HOUR)
        catalog.load_state(NAME)
        assert "if-none-match" not in seen[-1].headers
        assert catalog.store_at(ROOT) is store
        read(store)
        assert set(made.keys()) == {"K2"}
        catalog.load_state(NAME)
        assert "if-none-match" in seen[-1].headers


def test_a_table_is_sent_again_where_nobody_says_when_its_credentials_end() -> None:
    with lake(ENDPOINTS["by loading the table"]) as (made, catalog, seen):
        made.lend("K1", None)
        catalog.load_state(NAME)
        made.lend("K2", None)
        catalog.load_state(NAME)
        assert "if-none-match" not in seen[-1].headers
        read(catalog.store_at(ROOT))
        assert set(made.keys()) == {"K2"}


def test_credentials_are_used_to_their_end_while_the_catalog_gives_no_others() -> None:
    with lake(ENDPOINTS["by loading the table"]) as (made, catalog, seen):
        catalog.load_state(NAME)
        store = catalog.store_at(ROOT)
        made.is_away = True
        made.now_ms += HOUR - 200_000
        asked = len(seen)
        for _ in range(3):
            read(store)
        # Not at every read.
        assert len(seen) == asked + 1
        made.now_ms += 200_000
        with pytest.raises(EngineError, match=r"table db\.t"):
            read(store)
        made.is_away = False
        made.lend("K2", made.now_ms + HOUR)
        made.keys()
        read(store)
        assert set(made.keys()) == {"K2"}


def test_credentials_that_seem_to_have_ended_are_used_for_clocks_differ() -> None:
    with lake(ENDPOINTS["by loading the table"]) as (made, catalog, seen):
        made.lend("K1", made.now_ms - HOUR)
        catalog.load_state(NAME)
        asked = len(seen)
        for _ in range(3):
            read(catalog.store_at(ROOT))
        assert len(seen) == asked


def test_files_that_are_open_go_on_with_new_credentials() -> None:
    with lake(ENDPOINTS["with the credentials endpoint"]) as (made, catalog, _):
        catalog.load_state(NAME)
        store = catalog.store_at(ROOT)
        file = store.open_input(FILE)
        output = store.open_output(f"{ROOT}/data/new", overwrite=True)
        assert (file.size(), file.read(4)) == (10, b"0123")
        made.keys()
        made.now_ms += HOUR
        made.lend("K2", made.now_ms + HOUR)
        assert file.read(3) == b"456"
        file.seek(1)
        assert (file.read(2), file.tell()) == (b"12", 3)
        output.write(b"new")
        output.close()
        file.close()
        assert file.closed
        assert "PUT" in [request.method for request in made.bucket.seen]
        assert set(made.keys()) == {"K2"}


def test_a_renamed_table_asks_for_credentials_by_its_new_name() -> None:
    with lake(ENDPOINTS["with the credentials endpoint"]) as (made, catalog, seen):
        catalog.load_state(NAME)
        catalog.load_state(("db", "new"))
        made.now_ms += HOUR
        read(catalog.store_at(ROOT))
        assert seen[-1].path == "/v1/namespaces/db/tables/new/credentials"


def test_a_copy_in_another_process_has_credentials_that_last() -> None:
    with lake(ENDPOINTS["with the credentials endpoint"]) as (made, catalog, seen):
        catalog.load_state(NAME)
        made.now_ms += HOUR
        made.lend("K2", made.now_ms + HOUR)
        copy = pickle.loads(pickle.dumps(catalog.store_at(ROOT)))
        asked = len(seen)
        made.now_ms += 2 * HOUR
        assert read(copy) == b"234"
        assert set(made.keys()) == {"K2"}
        assert len(seen) == asked


@pytest.mark.parametrize("is_vended", [False, True])
def test_a_copy_in_another_process_has_no_secrets_of_the_catalog(is_vended: bool) -> None:
    secret = {
        "token": "zq-token",
        "credential": "zq-credential",
        "rest.auth.basic.password": "zq-basic",
        "rest.client.proxy.password": "zq-proxy",
        "rest.secret-access-key": "zq-sigv4",
        "header.X-Api-Key": "zq-header",
    }
    storage = {
        "s3.access-key-id": "kept",
        "s3.secret-access-key": "kept",
        "adls.sas-token.account": "kept",
        ENDS_AT: "5",
        "s3.signer.uri": "kept",
    }
    stores = TableStores({**secret, **storage}, still)
    if is_vended:
        learned(stores, config={"token": "zq-lent", "s3.region": "here"})
    found = stores(FILE) if is_vended else stores._default
    copy = pickle.dumps(found)
    assert b"zq-" not in copy
    options = pickle.loads(copy)._properties
    assert options == storage

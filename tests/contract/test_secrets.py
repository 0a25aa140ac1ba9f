"""Random secrets, given in every place that takes one, are in no error, `repr`, warning or file of the engine."""

from __future__ import annotations

import base64
import gc
import logging
import secrets
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import EngineError
from tests.services.rest_over_catalog import RestOverCatalog
from tests.services.s3_server import KEY, REGION, S3Server
from tests.services.scripted_http import Reply, Seen, scripted_server

ROWS = pa.table({"id": range(10)})
Use = Callable[[], object]


def made() -> str:
    return f"zq{secrets.token_hex(12)}"


class Witness:
    """Keeps what is shown, and looks for secrets in it."""

    def __init__(self, secret: str, capture: pytest.LogCaptureFixture) -> None:
        self.secret = secret
        self._capture = capture
        self.shown: list[str] = []

    def fails(self, use: Use) -> None:
        """The error, with the causes that a traceback prints."""
        with pytest.raises(EngineError) as caught:
            use()
        self.shown += [repr(caught.value), *traceback.format_exception(caught.value)]

    def look(self) -> int:
        """The `repr` of every object of the engine that lives now; how many there are."""
        living = [each for each in gc.get_objects() if str(type(each).__module__).startswith("icebench.engine.")]
        for each in living:
            with suppress(AttributeError, TypeError):  # half made, or a class
                self.shown.append(repr(each))
        return len(living)

    def clean(self, folder: Path) -> None:
        for text in [*self.shown, self._capture.text]:
            assert self.secret not in text
            assert base64.b64encode(self.secret.encode()).decode() not in text
        for path in folder.rglob("*"):
            assert not path.is_file() or self.secret.encode() not in path.read_bytes(), path


@pytest.fixture
def witness(caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder, tmp_path: Path) -> Iterator[Witness]:
    caplog.set_level(logging.WARNING)
    found = Witness(made(), caplog)
    yield found
    found.shown += [str(warning.message) for warning in recwarn]
    found.clean(tmp_path)


def used(table: icebench.Table) -> None:
    table.append(ROWS)
    table.delete("id < 3", mode="merge-on-read")
    assert table.scan().count() == table.scan().to_arrow().num_rows


def test_the_password_of_a_database(witness: Witness, postgres_url: str, tmp_path: Path) -> None:
    address = postgres_url.replace("icebench@", f"icebench:{witness.secret}@")
    catalog = icebench.load_catalog(address, warehouse=str(tmp_path))
    used(catalog.create_table("db.t", ROWS.schema))
    witness.fails(lambda: catalog.load_table("db.missing"))
    assert witness.look() > 10
    catalog.close()
    witness.fails(lambda: icebench.load_catalog(address.replace("host=", "host=/nowhere")))


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://u:{}@127.0.0.1:1/db",
        "postgresql+psycopg://u:a b/{}@127.0.0.1:1/db",
        "postgresql+psycopg://u:a@{}@127.0.0.1:1/db",
        "postgresql+psycopg://u:{}@127.0.0.1:port/db",
        "postgresql+psycopg://u@127.0.0.1:1/db?password={}",
        "postgresql+psycopg://u@127.0.0.1:1/db?sslpassword={}",
        "no-such-database://u:{}@host/db",
        "sqlite+:no://u:{}@host/db",
        "mssql+pyodbc:///?odbc_connect=PWD%3D{}",
        "thrift://u:{}@127.0.0.1:1",
        "https://u:{}@127.0.0.1:1/x",
        "https://{}@127.0.0.1:1/x",
        "https://127.0.0.1:1/x?token={}",
        "https://u:{}@[127.0.0.1:1/x",
        "s3://u:{}@bucket/x",
        "abfss://u:{}@account/x",
        "hdfs://u:{}@[host/x",
    ],
)
def test_addresses_that_cannot_be_opened(witness: Witness, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = address.format(witness.secret)
    properties = {"s3.endpoint": "http://127.0.0.1:1", "s3.retry.num-retries": "0", "s3.connect-timeout": "1"}
    properties |= {"s3.request-timeout": "1"} if given.startswith("s3") else {}
    quick = properties if given.startswith("s3") else None

    def load() -> object:
        return icebench.load_catalog(given, properties=quick).load_table("db.t")

    witness.fails(load)
    if not address.startswith("abfss"):
        witness.fails(lambda: icebench.load_table(given, properties=quick))
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", given)
    if not address.startswith(("s3", "abfss", "hdfs")):
        witness.fails(lambda: icebench.load_catalog("lake").load_table("db.t"))


PLACES: dict[str, Callable[[str], Mapping[str, str]]] = {
    "token": lambda secret: {"token": secret},
    "credential": lambda secret: {"credential": f"id:{secret}"},
    "header": lambda secret: {"header.X-Api-Key": secret},
    "authorization": lambda secret: {"header.Authorization": f"Bearer {secret}"},
    "basic": lambda secret: {
        "rest.auth.type": "basic",
        "rest.auth.basic.username": "u",
        "rest.auth.basic.password": secret,
    },
    "s3": lambda secret: {"s3.access-key-id": KEY, "s3.secret-access-key": secret, "s3.session-token": secret},
    "adls": lambda secret: {"adls.account-key": secret, "adls.sas-token": secret, "adls.client-secret": secret},
    "sigv4": lambda secret: {
        "rest.sigv4-enabled": "true",
        "rest.signing-region": REGION,
        "rest.access-key-id": KEY,
        "rest.secret-access-key": secret,
        "rest.session-token": secret,
    },
    "proxy": lambda secret: {"s3.proxy-uri": f"http://u:{secret}@127.0.0.1:1"},
    "token endpoint": lambda secret: {"credential": "id:other", "oauth2-server-uri": f"http://u:{secret}@127.0.0.1:1"},
}


@contextmanager
def rest_server(folder: Path, secret: str, sent: Mapping[str, object]) -> Iterator[str]:
    """A server that repeats what it was sent where it refuses; `sent` is what it sends with tables."""
    inner = icebench.load_catalog(f"sqlite:///{folder.parent}/{folder.name}.db", warehouse=str(folder))
    inner.create_table("db.t", ROWS.schema)
    over = RestOverCatalog(inner._inner)

    def answer(request: Seen) -> Reply:
        if "missing" in request.path:
            message = " ".join([*request.headers.values(), request.body.decode(), secret if sent else ""])
            return Reply(status=400, body={"error": {"message": message, "type": "Bad", "code": 400}})
        if "moved" in request.path:
            return Reply(status=302, body="", headers={"Location": f"/x?token={secret}"})
        if request.path.endswith("/tokens"):
            return Reply(body={"access_token": secret, "token_type": "bearer"})
        reply = over(request)
        assert isinstance(reply.body, dict)
        if "overrides" in reply.body and "defaults" in sent:
            reply.body.update(sent)
        if "metadata" in reply.body:
            reply.body.update(sent)
        return reply

    with scripted_server(answer) as server:
        yield server.address


def work(witness: Witness, address: str, properties: Mapping[str, str]) -> None:
    catalog = icebench.load_catalog(address, properties=properties)
    table = catalog.load_table("db.t")
    used(table)
    for name in ("db.missing", "db.moved"):
        witness.fails(lambda name=name: catalog.load_table(name))  # type: ignore[misc]
    assert witness.look() > 10
    catalog.close()


@pytest.mark.filterwarnings("ignore::icebench.engine.errors.IgnoredPropertyWarning")
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_properties_of_a_rest_catalog(
    witness: Witness, place: Callable[[str], Mapping[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = place(witness.secret)
    with rest_server(tmp_path, witness.secret, {}) as address:
        if "oauth2-server-uri" in given:
            witness.fails(lambda: icebench.load_catalog(address, properties=given))
            return
        work(witness, address, given)
        # The same of a configuration; the file is a place that has it.
        home = tmp_path.parent / f"{tmp_path.name}-home"
        home.mkdir()
        listed = "".join(f"    {name}: '{value}'\n" for name, value in {**given, "uri": address}.items())
        (home / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{listed}")
        monkeypatch.setenv("PYICEBERG_HOME", str(home))
        work(witness, "lake", {})
        (home / ".pyiceberg.yaml").write_text(f"catalog:\n  lake:\n{listed}   - {witness.secret}: '")
        witness.fails(lambda: icebench.load_catalog("lake"))


def test_what_a_server_sends(witness: Witness, tmp_path: Path) -> None:
    secret = witness.secret
    credential = {"prefix": "s3", "config": {"s3.secret-access-key": secret, "s3.session-token": secret}}
    signing = {"headers": {"X-Signer": [secret]}, "properties": {"token": secret}}
    table: dict[str, object] = {
        "config": {"token": secret, "s3.secret-access-key": secret, "adls.sas-token.account": secret},
        "storage-credentials": [credential],
        "remote-signing-config": signing,
    }
    overrides = {"header.X-Key": secret, "s3.secret-access-key": secret}
    both: list[dict[str, object]] = [{"defaults": {"token": secret}, "overrides": overrides}, table]
    for number, sent in enumerate(both):
        with rest_server(tmp_path / str(number), secret if number == 0 else "", sent) as address:
            work(witness, address, {})


def test_keys_of_an_object_store(witness: Witness, s3_server: S3Server, bucket: str, tmp_path: Path) -> None:
    own = {**s3_server.properties, "s3.secret-access-key": witness.secret, "s3.session-token": witness.secret}
    catalog = icebench.load_catalog(f"s3://{bucket}/wh", properties=own)
    used(catalog.create_table("db.t", ROWS.schema))
    used(
        icebench.load_catalog(
            f"sqlite:///{tmp_path}/c.db", warehouse=f"s3://{bucket}/sql", properties=own
        ).create_table("db.t", ROWS.schema)
    )
    assert witness.look() > 10
    quick = {**own, "s3.endpoint": "http://127.0.0.1:1", "s3.retry.num-retries": "0"}
    witness.fails(lambda: icebench.load_catalog(f"s3://{bucket}/wh", properties=quick).load_table("db.t"))
    witness.fails(
        lambda: icebench.load_catalog(f"s3://{bucket}/wh", properties=quick).create_table("db.u", ROWS.schema)
    )
    witness.fails(
        lambda: icebench.load_catalog(
            "glue",
            properties={
                **own,
                "type": "glue",
                "glue.region": "us-east-1",
                "glue.endpoint": "http://127.0.0.1:1",
                "glue.max-retries": "0",
                "glue.access-key-id": KEY,
                "glue.secret-access-key": witness.secret,
                "glue.session-token": witness.secret,
            },
        ).list_tables("db")
    )

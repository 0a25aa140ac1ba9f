from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.engines.access import Access, TableAccess, with_environment
from icebench.bench.engines.duckdb_engine import connected, secret_of
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.engines.spark_storage import s3a_settings

KEYS = {"s3.access-key-id": "id", "s3.secret-access-key": "it's", "s3.session-token": "lent"}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"client.region": "eu", "client.access-key-id": "a"}, {"s3.region": "eu", "s3.access-key-id": "a"}),
        ({"client.region": "eu", "s3.region": "us"}, {"s3.region": "us"}),
        ({"s3.path-style-access": "true"}, {"s3.force-virtual-addressing": "false"}),
        ({"s3.path-style-access": "False"}, {"s3.force-virtual-addressing": "true"}),
        ({"client.assume-role.arn": "r"}, {"s3.role-arn": "r"}),
        ({"adls.account-key": "k"}, {"adls.account-key": "k"}),
    ],
)
def test_one_name_for_each_option(given: Mapping[str, str], named: Mapping[str, str]) -> None:
    assert Access("s3", given).in_pyiceberg_names == named
    assert "zq" not in repr(Access("s3", {"s3.secret-access-key": "zq"}))


@pytest.mark.parametrize(
    ("scheme", "given", "added"),
    [
        ("s3", {}, {"s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.region"}),
        ("s3a", {"client.role-arn": "r"}, {"s3.endpoint"}),
        ("s3", {"client.access-key-id": "k"}, {"s3.endpoint"}),
        ("s3", {"s3.endpoint": "http://own"}, set()),
        ("gs", {}, set()),
        ("", {}, set()),
    ],
)
def test_options_of_the_environment(
    scheme: str, given: Mapping[str, str], added: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "of the environment")
    # Without an endpoint all engines find the rest as AWS's tools do.
    assert with_environment(Access(scheme, given)).options == given
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    found = with_environment(Access(scheme, given)).options
    assert found.keys() == given.keys() | added
    assert found.items() >= given.items()


def test_access_for_duckdb() -> None:
    found = secret_of(Access("s3", {**KEYS, "s3.endpoint": "http://127.0.0.1:9000/", "s3.region": "eu"}))
    assert found == [
        "TYPE s3",
        "KEY_ID 'id'",
        "SECRET 'it''s'",
        "SESSION_TOKEN 'lent'",
        "REGION 'eu'",
        "ENDPOINT '127.0.0.1:9000'",
        "URL_STYLE 'path'",
        "USE_SSL false",
    ]
    virtual = secret_of(Access("s3", {"s3.endpoint": "minio.example", "s3.path-style-access": "false"}))
    assert virtual[1:] == ["ENDPOINT 'minio.example'", "URL_STYLE 'vhost'", "USE_SSL true"]
    with pytest.raises(EngineMissing, match=r"duckdb has no setting for s3.role-arn"):
        secret_of(Access("s3", {"client.role-arn": "r"}))
    with pytest.raises(EngineMissing, match=r"abfss:// locations"):
        connected(Access("abfss", {"adls.account-key": "k"}))


def test_access_for_spark() -> None:
    found = s3a_settings({**KEYS, "s3.endpoint": "https://minio.example", "s3.force-virtual-addressing": "true"})
    assert found == {
        "fs.s3a.endpoint": "https://minio.example",
        "fs.s3a.access.key": "id",
        "fs.s3a.secret.key": "it's",
        "fs.s3a.session.token": "lent",
        "fs.s3a.path.style.access": "false",
        "fs.s3a.connection.ssl.enabled": "true",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    }
    own = {name: value for name, value in KEYS.items() if "token" not in name}
    assert s3a_settings(own)["fs.s3a.aws.credentials.provider"].endswith(".SimpleAWSCredentialsProvider")
    assert s3a_settings({}) == {}


def test_credentials_are_asked_for_again_and_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    catalog = icebench.load_catalog(str(tmp_path))
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    given = [{"s3.secret-access-key": f"secret-{n}"} for n in range(2)]
    monkeypatch.setattr(icebench.Catalog, "storage_options", lambda *_: given.pop(0))
    now = [0.0]
    access = TableAccess(clock=lambda: now[0])
    location = access.open(str(tmp_path), "db.t", None)
    assert location == table.metadata_location
    copy = access.copied(location, "/copy")
    assert [access(location).options["s3.secret-access-key"] for _ in range(2)] == ["secret-0"] * 2
    now[0] = 61
    assert access(location).options["s3.secret-access-key"] == "secret-1"
    assert access.without_secrets("secret-0 or secret-1, postgresql://u:pw@h/d") == "*** or ***, postgresql://u:***@h/d"
    assert access.reader(copy) is not None
    assert access("/another") == Access("", {})
    assert access.reader("/another") is None

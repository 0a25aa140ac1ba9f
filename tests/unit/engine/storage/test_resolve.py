from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyarrow import fs

from icebench.engine.runtime.local import LocalRunner
from icebench.engine.storage.arrow import ArrowStore
from icebench.engine.storage.local import LocalStore
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.relocated import RelocatedStore
from icebench.engine.storage.resolve import (
    Stores,
    absolute_location,
    default_runner,
    normalise_location,
    scheme_of,
    store_for,
)
from icebench.errors import Invalid, StorageFailed, Unsupported


@pytest.mark.parametrize(
    ("location", "scheme"),
    [
        ("/a/b", ""),
        ("a/b:c", ""),
        ("file:/a", "file"),
        ("FILE:///a", "file"),
        ("s3://bucket/a:b", "s3"),
        ("sqlite:///x.db", "sqlite"),
        ("/a:b", ""),
    ],
)
def test_schemes(location: str, scheme: str) -> None:
    assert scheme_of(location) == scheme


def test_stores_by_scheme() -> None:
    assert isinstance(store_for("/a"), LocalStore)
    assert isinstance(store_for("file:///a"), LocalStore)
    assert isinstance(store_for("memory://a"), MemoryStore)
    properties = {"s3.endpoint": "http://127.0.0.1:1", "s3.region": "us-east-1"}
    for scheme in ("s3", "s3a"):
        assert isinstance(store_for(f"{scheme}://bucket/key", properties), ArrowStore)


def test_threads_by_where_files_really_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icebench.engine.storage.resolve.available_threads", lambda: 3)
    here, there = MemoryStore(), RelocatedStore(store_for, {"/old": "s3://bucket/new", "s3://bucket/old": "/new"})
    of_processors = LocalRunner().threads
    assert default_runner(here, "memory://a").threads == of_processors
    assert default_runner(there, "/old/t").threads == 8
    assert default_runner(there, "s3://bucket/old/t").threads == of_processors
    monkeypatch.setattr("icebench.engine.storage.resolve.available_threads", lambda: 64)
    assert default_runner(there, "/old/t").threads == 64


def test_options_reach_the_file_system() -> None:
    region = {"client.region": "eu-west-1", "s3.region": "us-east-1"}
    stored = store_for("s3://bucket", region)
    assert isinstance(stored, ArrowStore)
    # As in PyIceberg, what is said of S3 stands above what is said of every service.
    assert stored.filesystem.equals(fs.S3FileSystem(region="us-east-1", allow_delayed_open=True))
    token = {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1900000000000", "gcs.project-id": "p"}
    for options, ends in ((token, 1_900_000_000), (token | {"gcs.oauth2.token-expires-at": "?"}, 7_258_118_400)):
        stored = store_for("gs://bucket", options)
        assert isinstance(stored, ArrowStore)
        expected = {"credential_token_expiration": datetime.fromtimestamp(ends, UTC), "project_id": "p"}
        assert stored.filesystem.equals(fs.GcsFileSystem(access_token="t", **expected))


def test_options_of_adls(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []
    monkeypatch.setattr(
        "icebench.engine.storage.object_stores.fs.AzureFileSystem", lambda **options: given.append(options)
    )
    properties = {"adls.sas-token.ann.dfs.core.windows.net": "s", "adls.blob-storage-scheme": "http"}
    store = store_for("abfss://box@ann.dfs.core.windows.net/a", properties)
    authorities = {f"{each}_storage_authority": f".{each}.core.windows.net" for each in ("blob", "dfs")}
    assert given == [{"account_name": "ann", "sas_token": "s", "blob_storage_scheme": "http", **authorities}]
    assert isinstance(store, ArrowStore)
    assert store._path("abfs://box@ann.dfs.core.windows.net/a/b") == "box/a/b"
    with pytest.raises(Invalid, match="container@account"):
        store_for("abfss://box/a")


def test_credentials_of_adls_go_to_the_account_of_the_location(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []
    monkeypatch.setattr(
        "icebench.engine.storage.object_stores.fs.AzureFileSystem", lambda **options: given.append(options)
    )
    place = "abfss://box@ann.dfs.core.chinacloudapi.cn/a"
    store_for(place, {"adls.sas-token": "of the configuration", "adls.sas-token.ann": "lent"})
    assert given[0]["sas_token"] == "lent"
    assert given[0]["dfs_storage_authority"] == ".dfs.core.chinacloudapi.cn"
    assert given[0]["blob_storage_authority"] == ".blob.core.chinacloudapi.cn"
    with pytest.raises(Invalid, match=r"in the account 'ann', and adls\.account-name"):
        store_for(place, {"adls.account-name": "bob", "adls.account-key": "k"})
    own = {"adls.account-name": "bob", "adls.dfs-storage-authority": "localhost:1", "adls.blob-storage-authority": "h"}
    store_for("abfss://box@localhost:1/a", own)
    assert given[1] == {"account_name": "bob", "dfs_storage_authority": "localhost:1", "blob_storage_authority": "h"}


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"s3.anonymous": "perhaps"}, "neither true nor false"),
        ({"s3.connect-timeout": "soon"}, "seconds"),
        ({"s3.retry.num-retries": "-1"}, "retries"),
        ({"s3.proxy-uri": "http://ann:hidden@[proxy"}, r"\*\*\*"),
    ],
)
def test_what_storage_options_cannot_be(properties: dict[str, str], said: str) -> None:
    with pytest.raises((Invalid, StorageFailed), match=said) as caught:
        store_for("s3://bucket", {"s3.region": "us-east-1", **properties})
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_memory_is_shared() -> None:
    store_for("memory://shared").write("memory://shared/x", b"1", overwrite=True)
    assert store_for("memory://shared").read("memory://shared/x") == b"1"


def test_relative_paths_and_unknown_schemes() -> None:
    with pytest.raises(Invalid, match="neither an absolute path"):
        store_for("a/b")
    with pytest.raises(Unsupported, match="'ftp'"):
        store_for("ftp://host/a")


def test_a_store_is_opened_once_for_a_bucket() -> None:
    stores = Stores({"s3.endpoint": "http://127.0.0.1:1", "s3.region": "us-east-1"})
    assert stores("/a") is stores("/b/c")
    assert stores("s3://one/a") is stores("s3://one/b")
    assert stores("s3://one/a") is not stores("s3://two/a")
    assert stores("s3://one/a") is not stores("memory://one/a")


def test_options_of_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []

    class Client:
        def __init__(self, **options: object) -> None:
            given.append(options)

    monkeypatch.setattr("icebench.engine.storage.object_stores.fs.S3FileSystem", Client)
    store_for(
        "s3a://bucket/a",
        {
            "s3.endpoint": "http://127.0.0.1:1",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "s3.session-token": "token",
            "client.region": "us-east-1",
            "s3.path-style-access": "false",
        },
    )
    assert given == [
        {
            "endpoint_override": "http://127.0.0.1:1",
            "access_key": "key",
            "secret_key": "secret",
            "session_token": "token",
            "region": "us-east-1",
            "force_virtual_addressing": True,
            "allow_delayed_open": True,
        }
    ]


def test_paths_are_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    assert absolute_location("wh") == f"{tmp_path}/wh"
    assert absolute_location("/wh/") == "/wh"
    assert absolute_location("~/wh") == "/home/ann/wh"
    assert absolute_location("s3://bucket/wh/") == "s3://bucket/wh"


@pytest.mark.parametrize("location", ["hdfs://nowhere:1/x", "viewfs://nowhere/x"])
def test_storage_whose_library_is_missing(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(StorageFailed, match=f"cannot open {location}: "):
        store_for(location)


@pytest.mark.parametrize("location", ["s3://bucket//key", "s3:///key"])
def test_keys_that_the_file_system_refuses(location: str) -> None:
    said = f"cannot .* {location}: " if location == "s3:///key" else f"{location}: pyarrow reads no path with an empty"
    store = Stores({"s3.endpoint": "http://127.0.0.1:1", "s3.region": "us-east-1"})(location)
    for use in (store.read, store.size, store.exists, store.open_input, store.delete, lambda at: list(store.list(at))):
        with pytest.raises((StorageFailed, Unsupported), match=said):
            use(location)


@pytest.mark.parametrize("location", ["s3://[x/y", "viewfs://[x/y", "hdfs://]["])
def test_authorities_that_are_none(location: str) -> None:
    with pytest.raises(Invalid, match="is no location"):
        Stores()(location)


def test_a_home_that_nobody_has() -> None:
    with pytest.raises(Invalid, match="is no path"):
        absolute_location("~nobody-has-this-name/wh")


def test_new_locations_are_normalised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert normalise_location("../wh") == f"{tmp_path}/wh"
    assert normalise_location("./wh/") == f"{tmp_path}/here/wh"
    assert normalise_location("file:///a//wh") == "file:///a/wh"
    assert normalise_location("file:/a/../wh") == "file:/wh"
    assert normalise_location("s3a://bucket//wh/") == "s3a://bucket/wh"
    assert normalise_location("memory://wh") == "memory://wh"


def test_the_parent_of_a_link_is_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    assert normalise_location(f"{tmp_path}/link/../wh") == f"{tmp_path}/far/wh"
    assert normalise_location(f"{tmp_path}/link/a/../wh") == f"{tmp_path}/link/wh"


@pytest.mark.parametrize("location", ["hdfs://namenode:8020/wh", "viewfs://cluster/wh"])
@pytest.mark.parametrize(
    "message", ["Unable to load libjvm: dlopen\npages\nmore", "Prior attempt to load libhdfs failed"]
)
def test_a_missing_hdfs_library_is_one_line_with_a_remedy(
    location: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise OSError(message)

    monkeypatch.setattr("icebench.engine.storage.object_stores.fs.FileSystem", SimpleNamespace(from_uri=missing))
    with pytest.raises(StorageFailed, match=r"HDFS needs a Java runtime .* CLASSPATH") as raised:
        store_for(location)
    assert "\n" not in str(raised.value)

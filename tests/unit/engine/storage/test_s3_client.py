from pathlib import Path

import pytest
from botocore.loaders import JSONFileLoader
from pyarrow import fs

from icebench.engine.storage.s3_client import s3_client

_KEYS = {"access_key": "a", "secret_key": "b"}


def test_a_second_client_reads_no_description_of_services_again(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"access_key": "a", "secret_key": "b", "endpoint_override": "http://127.0.0.1:9"}
    first = s3_client(arguments)
    read: list[str] = []
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda _, path: read.append(path))
    second = s3_client({**arguments, "access_key": "c"})
    assert read == []
    assert second is not first


@pytest.mark.parametrize("names", [("AWS_REGION",), ("AWS_DEFAULT_REGION",), ("AWS_DEFAULT_REGION", "AWS_REGION"), ()])
def test_the_region_is_that_of_pyarrows_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: tuple[str, ...]
) -> None:
    (tmp_path / "config").write_text("[default]\nregion = eu-west-3\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for number, name in enumerate(("AWS_REGION", "AWS_DEFAULT_REGION"), 1):
        monkeypatch.delenv(name, raising=False)
        if name in names:
            monkeypatch.setenv(name, f"us-west-{number}")
    # pyarrow reads the file once in a process.
    expected = fs.S3FileSystem(**_KEYS).region if names else "eu-west-3"
    assert s3_client(_KEYS).meta.region_name == expected
    assert s3_client({**_KEYS, "region": "cn-north-1"}).meta.region_name == "cn-north-1"

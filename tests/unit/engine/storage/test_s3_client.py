import pytest
from botocore.loaders import JSONFileLoader

from icebench.engine.storage.s3_client import s3_client


def test_a_second_client_reads_no_description_of_services_again(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"access_key": "a", "secret_key": "b", "endpoint_override": "http://127.0.0.1:9"}
    first = s3_client(arguments)
    read: list[str] = []
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda _, path: read.append(path))
    second = s3_client({**arguments, "access_key": "c"})
    assert read == []
    assert second is not first

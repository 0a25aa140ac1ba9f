"""Errors of the engine survive pickling, as they cross from executors and worker processes."""

from __future__ import annotations

import pickle

import pytest

from icebench.engine.errors import (
    AlreadyExists,
    CommitConflict,
    CorruptTable,
    EngineError,
    FileNotFound,
    Invalid,
    is_secret,
    without_secrets,
)


@pytest.mark.parametrize(
    "error",
    [
        EngineError("plain"),
        Invalid("no column 'x'"),
        AlreadyExists(),
        CommitConflict("others", "came first"),
        FileNotFound("/t/data/a.parquet"),
        FileNotFound("/t/data/a.parquet", "table db.t, snapshot 17"),
        CorruptTable("two\nlines", location="/t/m.avro", path="block 2, entry 17", needed_by="table db.t"),
    ],
    ids=repr,
)
def test_pickled_errors_keep_type_text_and_attributes(error: EngineError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at postgresql://u:p w/@x@h:5/db, no", "at postgresql://u:***@h:5/db, no"),
        ("a://u:p@h and b://v:q@h", "a://u:***@h"),
        ("https://u:p@h:1/x and https://tok@h", "https://***@h:1/x and https://***@h"),
        ("https://h:8443/a:b@c", "https://h:8443/a:b@c"),
        ("s3://bucket/a:b@c, abfss://c@account.host/x", "s3://bucket/a:b@c, abfss://c@account.host/x"),
        ("a://h?password=q&a=b&sslpassword=c'", "a://h?password=***&a=b&sslpassword=***'"),
        ("x?X-Amz-Signature=1&sig=2;token=3&design=4", "x?X-Amz-Signature=***&sig=***;token=***&design=4"),
    ],
)
def test_texts_are_shown_without_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert str(Invalid(text)) == shown
    assert str(FileNotFound(text)) == f"no such file: {shown}"


def test_names_of_secrets() -> None:
    secret = [
        "token",
        "credential",
        "s3.secret-access-key",
        "s3.session-token",
        "header.X-Key",
        "adls.account-key",
        "adls.auth.shared-key.account.key",
        "adls.sas-token.account",
        "rest.client.proxy.password",
    ]
    shown = [
        "s3.endpoint",
        "s3.session-token-expires-at-ms",
        "adls.sas-token-expires-at-ms.a",
        "scope",
        "signature-of",
        "token-exchange-enabled",
        "token-expires-in-ms",
        "gcs.oauth2.token-expires-at",
    ]
    assert [name for name in [*secret, *shown] if is_secret(name)] == [*secret, "signature-of"]

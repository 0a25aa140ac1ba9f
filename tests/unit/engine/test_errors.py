"""Errors of the engine survive pickling, as they cross from executors and worker processes."""

from __future__ import annotations

import pickle

import pytest

from engine.errors import AlreadyExists, CommitConflict, CorruptTable, EngineError, FileNotFound, Invalid


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

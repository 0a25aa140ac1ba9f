"""The quick way to decode snapshots gives what the slow one gives, or leaves it to that one."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.snapshots import (
    plain_snapshot,
    plain_snapshot_log,
    snapshot_from_json,
    snapshot_log_from_json,
)
from icebench.errors import CorruptTable

NUMBERS = st.one_of(
    st.integers(0, 9), st.sampled_from([-1, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, True, None, "1", 1.0])
)
TEXTS = st.sampled_from(["append", "delete", "compact", "", None, 3])
SUMMARIES = st.one_of(
    st.none(), st.just("x"), st.dictionaries(st.sampled_from(["operation", "a", "b"]), TEXTS, max_size=3)
)
SNAPSHOTS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, 3, [], "x"]),
    st.fixed_dictionaries(
        {"snapshot-id": NUMBERS, "timestamp-ms": NUMBERS, "manifest-list": TEXTS, "summary": SUMMARIES},
        optional={
            **dict.fromkeys(
                ["parent-snapshot-id", "sequence-number", "schema-id", "first-row-id", "added-rows"], NUMBERS
            ),
            "key-id": TEXTS,
            "manifests": st.just(["m"]),
        },
    ),
)
USUAL = {
    "snapshot-id": 7,
    "timestamp-ms": 9,
    "manifest-list": "s",
    "summary": {"operation": "append", "a": "b"},
    "parent-snapshot-id": 6,
    "sequence-number": 2,
    "schema-id": 0,
    "first-row-id": 4,
    "added-rows": 5,
}


@given(SNAPSHOTS, st.integers(1, 3))
@example(USUAL, 3)
def test_snapshots(document: Any, version: int) -> None:
    before = copy.deepcopy(document)
    found = plain_snapshot(document)
    assert document == before
    assert (found is not None) or document != USUAL
    if found is not None:
        assert found == snapshot_from_json(JsonObject(document), format_version=version)
        assert all(type(v) in {int, str, tuple, dict, type(None)} for v in map(found.__getattribute__, found.__slots__))


@given(
    st.one_of(
        st.none(), st.just(4), st.fixed_dictionaries({}, optional={"timestamp-ms": NUMBERS, "snapshot-id": NUMBERS})
    )
)
def test_snapshot_logs(document: Any) -> None:
    found = plain_snapshot_log(document)
    if found is not None:
        assert found == snapshot_log_from_json(JsonObject(document))


def test_errors_name_the_place() -> None:
    node = JsonObject({"snapshots": [USUAL, {**USUAL, "summary": {"operation": "append", "a": 3}}]})
    with pytest.raises(CorruptTable, match=r"snapshots\[1\]\.summary\.a"):
        node.decoded("snapshots", plain_snapshot, partial(snapshot_from_json, format_version=2))

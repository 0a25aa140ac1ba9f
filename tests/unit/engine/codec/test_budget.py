"""What the decoding of a file may take."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.avro.reading import block_columns
from icebench.engine.codec.budget import DEFAULT_BYTES, Budget, budget_of, piece_limit, too_large
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.codec.manifests.reader import decode_columns
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.errors import Invalid, TooLarge
from tests.property.manifest_batches import metrics_of
from tests.property.manifest_strategies import WrittenManifest, manifests


@pytest.fixture(params=["interpreted", "compiled"], scope="module")
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways to run the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DECODE_CHUNK, "should_use", lambda _: request.param != "interpreted")
        yield request.param


def test_a_file_may_take_the_default_or_ten_times_its_size():
    assert budget_of(1, {}) == DEFAULT_BYTES
    assert budget_of(1 << 30, {}) == 10 << 30
    assert budget_of(10, {"ICEBENCH_DECODE_BYTES": "1000"}) == 1000
    assert budget_of(1000, {"ICEBENCH_DECODE_BYTES": "1000"}) == 10_000
    assert piece_limit(1) == DEFAULT_BYTES // 6
    for text in ("", "-1", "1e9", "9" * 5000):
        with pytest.raises(Invalid, match="is not a number of bytes"):
            budget_of(1, {"ICEBENCH_DECODE_BYTES": text})


def test_the_error_says_what_where_and_what_to_do():
    error = too_large("a blob of 3 bytes", 5, location="s3://b/x", path="blob at 4")
    expected = "s3://b/x at blob at 4: a blob of 3 bytes takes more than 5 bytes decoded; raise ICEBENCH_DECODE_BYTES"
    assert str(error) == f"{expected} if the table is sound"


def test_parts_share_what_others_leave():
    budget = Budget(600, parts=3)
    with budget.allowance() as own:
        assert own.size_bytes == 200
        own.used_bytes = 150
        assert own.left_bytes == 50
    with budget.allowance() as first, budget.allowance() as second:
        assert (first.size_bytes, second.size_bytes) == (200, 200)
        first.used_bytes = second.used_bytes = 200
    with budget.allowance() as last:
        assert last.size_bytes == 50
        last.used_bytes = 70
    with budget.allowance() as none:
        assert none.size_bytes <= 0


def test_a_part_waits_for_what_another_may_leave():
    budget = Budget(300, parts=2)
    both = Barrier(2, timeout=30)

    def take(uses: int) -> int:
        with budget.allowance() as own:
            if both.n_waiting or uses:
                both.wait()
            own.used_bytes = uses
            return own.size_bytes

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(take, [100, 100])) == [150, 150]
    assert take(0) == 100


def test_after_an_error_nothing_is_left():
    budget = Budget(100)
    with pytest.raises(ZeroDivisionError), budget.allowance():
        raise ZeroDivisionError
    with budget.allowance() as own:
        assert own.size_bytes == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    manifest=manifests(), limit=st.integers(0, 60_000), metrics=st.sampled_from([(), [1, 2, 200], None]), data=st.data()
)
def test_a_manifest_is_decoded_as_always_or_not(
    kernels: str, manifest: WrittenManifest, limit: int, metrics: Any, data: st.DataObject
):
    expected = decode_columns(manifest.data, metrics=metrics)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setenv("ICEBENCH_DECODE_BYTES", str(limit))
        patch.setattr(block_columns, "_CHUNK_BYTES", data.draw(st.sampled_from([1, 1 << 20])))
        runs: Any = data.draw(st.sampled_from([map, pool.map]))
        try:
            found = decode_columns(manifest.data, metrics=metrics, map_chunks=runs)
        except TooLarge:
            assert limit < 40_000 + 60 * expected["file_path"].nbytes + 2000 * expected.count
        else:
            assert found.count == expected.count
            assert found["file_path"].equals(expected["file_path"])
            assert found["record_count"].equals(expected["record_count"])
            assert metrics_of(found, "lower_bounds") == metrics_of(expected, "lower_bounds")


def test_rows_are_counted_while_they_are_decoded(kernels: str, monkeypatch: pytest.MonkeyPatch):
    listed = ManifestFile(
        manifest_path="m.avro",
        manifest_length=1,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=1,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
    )
    encoded = encode_manifest_list([listed] * 2000, format_version=2, snapshot_id=1)
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "8000000")
    assert len(decode_manifest_list(encoded)) == 2000
    monkeypatch.setenv("ICEBENCH_DECODE_BYTES", "1000000")
    with pytest.raises(TooLarge, match=r"l.avro at block \d, entry \d+: a file of \d+ bytes takes more than 1000000"):
        decode_manifest_list(encoded, location="l.avro")

from __future__ import annotations

import re

import pytest

from icebench.engine.spec import properties
from icebench.engine.spec.checked_properties import check_table_properties, valid_table_properties
from icebench.engine.spec.properties import Property
from icebench.errors import Invalid


def test_defaults_and_values() -> None:
    assert properties.COMMIT_NUM_RETRIES.of({}) == 4
    assert properties.COMMIT_NUM_RETRIES.of({"commit.retry.num-retries": "0"}) == 0
    assert properties.METADATA_PATH.of({}) is None
    assert properties.DELETE_MODE.of({"write.delete.mode": "Merge-On-Read"}) == "merge-on-read"
    assert properties.GC_ENABLED.of({"gc.enabled": "FALSE"}) is False


@pytest.mark.parametrize(
    ("known", "default"),
    [
        # As the specification and Iceberg Java have them: other writers of the table go by the same numbers.
        (properties.COMMIT_NUM_RETRIES, 4),
        (properties.COMMIT_MIN_WAIT_MS, 100),
        (properties.COMMIT_MAX_WAIT_MS, 60_000),
        (properties.COMMIT_TOTAL_TIMEOUT_MS, 1_800_000),
        (properties.STATUS_CHECK_NUM_RETRIES, 3),
        (properties.STATUS_CHECK_MIN_WAIT_MS, 1_000),
        (properties.STATUS_CHECK_MAX_WAIT_MS, 60_000),
        (properties.STATUS_CHECK_TOTAL_TIMEOUT_MS, 1_800_000),
        (properties.MANIFEST_TARGET_SIZE_BYTES, 8_388_608),
        (properties.MANIFEST_MIN_COUNT_TO_MERGE, 100),
        (properties.METADATA_PREVIOUS_VERSIONS_MAX, 100),
        (properties.TARGET_FILE_SIZE_BYTES, 536_870_912),
        (properties.DELETE_TARGET_FILE_SIZE_BYTES, 67_108_864),
        (properties.SPLIT_SIZE, 134_217_728),
        (properties.SPLIT_LOOKBACK, 10),
        (properties.SPLIT_OPEN_FILE_COST, 4_194_304),
        (properties.MAX_SNAPSHOT_AGE_MS, 432_000_000),
        (properties.MIN_SNAPSHOTS_TO_KEEP, 1),
        (properties.MAX_REF_AGE_MS, 9_223_372_036_854_775_807),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_numbers_that_a_table_does_not_set(known: Property[int], default: int) -> None:
    assert known.of({}) == default


@pytest.mark.parametrize(
    ("known", "text", "reason"),
    [
        *(
            (properties.COMMIT_NUM_RETRIES, text, "not a whole number")
            for text in ("1_0", " 1", "1\n", "\u0663", "+-1", "-", "", "1.0")
        ),
        (properties.COMMIT_NUM_RETRIES, str(1 << 63), "beyond 64 bits"),
        (properties.COMMIT_NUM_RETRIES, "many", "not a whole number"),
        (properties.COMMIT_NUM_RETRIES, "-1", "negative"),
        (properties.TARGET_FILE_SIZE_BYTES, "0", "not positive"),
        (properties.GC_ENABLED, "yes", "neither true nor false"),
        (properties.DELETE_MODE, "magic", "none of copy-on-write, merge-on-read"),
    ],
)
def test_wrong_texts_name_the_property(known: Property[object], text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=re.escape(f"{known.name}={text!r}") + f": is .*{reason}") as raised:
        known.of({known.name: text})
    assert "\n" not in str(raised.value)


def test_names_are_unique() -> None:
    known = [value for value in vars(properties).values() if isinstance(value, Property)]
    assert len({p.name for p in known}) == len(known) > 20


def test_properties_are_checked() -> None:
    good = {"commit.retry.num-retries": "0", "others": "x", "write.parquet.compression-codec": "lzo"}
    bad = {"commit.retry.num-retries": "x", "write.metadata.delete-after-commit.enabled": "yes"}
    check_table_properties(good)
    for name, text in bad.items():
        with pytest.raises(Invalid, match=name):
            check_table_properties({**good, name: text})
    assert valid_table_properties({**good, **bad}) == {n: t for n, t in good.items() if n not in bad}
    assert valid_table_properties(good) == good


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path", "write.object-storage.path"])
def test_locations_are_absolute(name: str) -> None:
    for good in ("/wh/data", "s3://bucket/data", "file:/wh", "memory://t"):
        check_table_properties({name: good})
    for bad in ("rel/x", "data/a:b", "file:rel", ":x"):
        with pytest.raises(Invalid, match=rf"{name}='{bad}': is neither an absolute path nor a URI"):
            check_table_properties({name: bad})
    assert valid_table_properties({name: "rel/x"}) == {}

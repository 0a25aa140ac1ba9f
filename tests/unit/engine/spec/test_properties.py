from __future__ import annotations

import pytest

from engine.errors import Invalid
from engine.spec import properties
from engine.spec.properties import Property


def test_defaults_and_values() -> None:
    assert properties.COMMIT_NUM_RETRIES.of({}) == 4
    assert properties.COMMIT_NUM_RETRIES.of({"commit.retry.num-retries": "0"}) == 0
    assert properties.METADATA_PATH.of({}) is None
    assert properties.DELETE_MODE.of({"write.delete.mode": "Merge-On-Read"}) == "merge-on-read"
    assert properties.GC_ENABLED.of({"gc.enabled": "FALSE"}) is False


@pytest.mark.parametrize(
    ("known", "text", "reason"),
    [
        (properties.COMMIT_NUM_RETRIES, "many", "not a whole number"),
        (properties.COMMIT_NUM_RETRIES, "-1", "negative"),
        (properties.TARGET_FILE_SIZE_BYTES, "0", "not positive"),
        (properties.GC_ENABLED, "yes", "neither true nor false"),
        (properties.DELETE_MODE, "magic", "none of copy-on-write, merge-on-read"),
    ],
)
def test_wrong_texts_name_the_property(known: Property[object], text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=f"{known.name}='{text}': is .*{reason}") as raised:
        known.of({known.name: text})
    assert "\n" not in str(raised.value)


def test_names_are_unique() -> None:
    known = [value for value in vars(properties).values() if isinstance(value, Property)]
    assert len({p.name for p in known}) == len(known) > 20

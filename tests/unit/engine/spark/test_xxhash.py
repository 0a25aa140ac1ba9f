"""XXH64 against the values that the algorithm's own tests publish."""

from __future__ import annotations

import pytest

from engine.spark.xxhash import spark_xxhash64, xxh64


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_known_values(data: bytes, expected: int) -> None:
    assert xxh64(data, 0) == expected


def test_of_spark_are_signed() -> None:
    assert spark_xxhash64("Spark") == -4294468057691064905

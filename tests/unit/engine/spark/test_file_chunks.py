"""Where rows of data files are, as Spark's joins know it."""

from __future__ import annotations

from icebench.engine.spark.file_chunks import xxhash64


def test_hashes_are_those_of_spark() -> None:
    assert xxhash64("Spark") == -4294468057691064905
    assert xxhash64("") == -7444071767201028348

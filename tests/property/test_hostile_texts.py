"""Texts of a table that are made to be slow to read: no pattern goes through one more than once."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable
from importlib import import_module

import pytest

from icebench import engine

LENGTH = 100_000
"""A pattern that tries every end from every beginning takes minutes for as many characters, others a millisecond."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "icebench.engine.catalog.metadata_files._UNIQUE": ("00003-5b7d1c9e-03fe-4c1a-8d2b-9c12d44103fe.",),
    "icebench.engine.catalog.ownership._UUID": ('"table-uuid" : "9c12d441-03fe"',),
    "icebench.engine.catalog.rest_signing._SIGNED_HEADERS": (
        "AWS4-HMAC-SHA256 SignedHeaders=host;range, S=1",
        "?x-signedheaders=a&",
    ),
    "icebench.engine.catalog.versions._NUMBERED": ("v12.gz.metadata.json", "v1.metadata.json.gz"),
    "icebench.engine.catalog.versions._UNIQUE": ("00003-5b7d.metadata.json.gz",),
    "icebench.engine.catalog.versions._BEFORE_ID": ("00003-",),
    "icebench.engine.catalog.versions._VERSION": ("17",),
    "icebench.engine.codec.metadata_json.schema._DECIMAL": ("decimal ( 9 , 2 )",),
    "icebench.engine.codec.metadata_json.schema._FIXED": ("fixed [ 16 ]",),
    "icebench.engine.codec.metadata_json.schema._GEOMETRY": ("geometry ( srid:4326 )",),
    "icebench.engine.codec.metadata_json.schema._GEOGRAPHY": ("geography ( srid:4326 , vincenty )", "geography (,)"),
    "icebench.engine.codec.metadata_json.values._DATE": ("+2024-02-29",),
    "icebench.engine.codec.metadata_json.values._TIME": ("10:11:12.000013",),
    "icebench.engine.columnar.foreign_filters._ITEM": (
        "call: 'greater'\nfield_ref: 'a'\nb'",
        "nested_field_ref: 'a'b'",
    ),
    "icebench.engine.formats.metrics_modes._TRUNCATE": ("truncate(16)",),
    "icebench.engine.expressions.temporal_literals._PATTERN": ("+2024-02-29T10:11:12.000013 +01:00",),
    "icebench.engine.expressions.parse._MISSING": ("Required keyword: 'this' missing for <class 'a.b'>",),
    "icebench.engine.expressions.sql._PLAIN_NAME": ("a_1",),
    "icebench.engine.plan.location_hashes._LOCATION": ("s3a://bucket/key", "file:/a//b"),
    "icebench.engine.spark.jobs._CARRIED": ("<engine-error:aGk+/w==>",),
    "icebench.engine.spark.file_chunks._PLAIN_NAME": ("a=1.b",),
    "icebench.engine.spark.partition_directories._NAME": ("a_1",),
    "icebench.engine.spec.locations._CURRENT": (".///./",),
    "icebench.engine.spec.locations._LOCATION": ("s3a://bucket/key", "file:/a//b"),
    "icebench.engine.spec.locations._SCHEME": ("s3a:/",),
    "icebench.engine.spec.locations._UNTIDY": ("//", "/.", "/"),
    "icebench.engine.spec.transforms._PARAMETRIC": ("bucket[16]",),
    "icebench.engine.errors._SECRET": ("account-key", "header.x", "sig"),
    "icebench.engine.errors._HTTP_USER": ("https://user:word@host",),
    "icebench.engine.errors._PASSWORD": ("postgresql://user:word@host",),
    "icebench.engine.errors._PARAMETER": ("?sig=abc&x=y",),
    "icebench.engine.spark_source.options._REDACTED": ("accesskey",),
    "icebench.engine.spark.memory._SIZE": ("512mb", "2g"),
    "icebench.engine.storage.retrying._TRANSIENT": ("HTTP status 503", "connection reset", "timed out"),
}
"""Pattern -> texts that it matches, which use all of its parts."""


def patterns() -> dict[str, re.Pattern[str]]:
    """All patterns of the engine's modules, by where they are."""
    found = {}
    for info in pkgutil.walk_packages(engine.__path__, "icebench.engine."):
        module = import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                is_text = isinstance(value.pattern, str)
                found[f"{info.name}.{name}"] = value if is_text else re.compile(value.pattern.decode(), value.flags)
    return found


@pytest.fixture(scope="module")
def known() -> dict[str, re.Pattern[str]]:
    return patterns()


def test_every_pattern_is_tried(known: dict[str, re.Pattern[str]]) -> None:
    assert known.keys() == EXAMPLES.keys()


@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_text_is_gone_through_again_and_again(name: str, known: dict[str, re.Pattern[str]]) -> None:
    for example in EXAMPLES[name]:
        uses = ways(known[name])
        assert all(use(example) for use in uses), example
        for cut in range(len(example) + 1):
            # What repeats a part of the pattern is beside it in the text.
            for filling in {*example[max(cut - 1, 0) : cut + 1], " "}:
                for use in uses:
                    use(example[:cut] + filling * LENGTH + "\x00")


_SEARCHED = (
    "parquet-mr",
    '"(?:table',
    "<engine-error",
    "//|",
    "SignedHeaders",
    "(secret",
    "(https?",
    "((?<!http)",
    "([?&;]",
    "secret|",
    "NETWORK_",
)
"""How the patterns begin that may match anywhere."""


def ways(pattern: re.Pattern[str]) -> tuple[Callable[[str], object], ...]:
    """How the pattern is used: but for these, it must match from the beginning."""
    if pattern.pattern.startswith(_SEARCHED):
        return (pattern.search,)
    return pattern.match, pattern.fullmatch

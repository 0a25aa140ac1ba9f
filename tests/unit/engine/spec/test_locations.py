from __future__ import annotations

import pytest

from icebench.engine.spec.locations import lies_inside, normalise, path_of


@pytest.mark.parametrize(
    ("written", "tidy"),
    [
        ("/a/b", "/a/b"),
        ("/a//b/", "/a/b"),
        ("//a///b", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/../a", "/a"),
        ("/a/..b/.c", "/a/..b/.c"),
        ("file:/a//b", "file:/a/b"),
        ("file:///x/../a", "file:///a"),
        ("s3a://bucket//k/", "s3a://bucket/k"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket", "s3://bucket"),
        ("relative/../b", "relative/../b"),
        ("/a%20b//c", "/a%20b/c"),
    ],
)
def test_normalised(written: str, tidy: str) -> None:
    assert normalise(written) == tidy
    assert normalise(tidy) == tidy
    assert path_of(f"{written}/x") == path_of(f"{tidy}/x")


@pytest.mark.parametrize(
    ("location", "directory", "inside"),
    [
        ("/a/b", "/a", True),
        ("/a/b", "file:///a/", True),
        ("/a", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a/../b", "/a", False),
        ("/x/../a/b", "/a", True),
        ("s3a://bucket/a/b", "s3n://bucket//a", True),
        ("s3://bucket/a", "s3://bucket", True),
        ("s3://other/a/b", "s3://bucket/a", False),
        ("s3://bucket/a/b", "/a", False),
        ("/a", "/", True),
    ],
)
def test_inside(location: str, directory: str, inside: bool) -> None:
    assert lies_inside(location, directory) is inside

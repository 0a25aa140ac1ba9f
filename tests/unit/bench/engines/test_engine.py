import pytest

from icebench.bench.engines.engine import Plan, normalised


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b c.parquet", "/a/b c.parquet"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("/a/b%20c", "/a/b%20c"),
        ("s3://bucket/a", "s3://bucket/a"),
    ],
)
def test_local_locations_are_paths(location: str, path: str) -> None:
    assert normalised(location) == path


def test_a_plan_asks_for_files_and_counters_once_and_late() -> None:
    asked: list[str] = []

    def paths() -> list[str]:
        asked.append("paths")
        return ["file:/a", "/a", "/b"]

    def counters() -> dict[str, int]:
        asked.append("counters")
        return {"files_planned": 3}

    plan = Plan(paths, counters)
    assert asked == []
    assert plan.files == plan.files == frozenset({"/a", "/b"})
    assert plan.counters == plan.counters == {"files_planned": 3}
    assert asked == ["paths", "counters"]

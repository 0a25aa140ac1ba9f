from __future__ import annotations

import pytest

from icebench.bench.gate.decisions.counter_kinds import Kind, depends_on_environment, is_within, kind_of


@pytest.mark.parametrize(
    ("counter", "kind"),
    [
        ("files_planned", Kind.WORK),
        ("storage_requests_range_read", Kind.WORK),
        ("rows_decoded", Kind.WORK),
        ("entries_skipped_by_metrics", Kind.AVOIDED),
        ("row_groups_skipped", Kind.AVOIDED),
        ("rows_returned", Kind.ANSWER),
    ],
)
def test_a_counters_name_decides_how_its_changes_are_classified(counter: str, kind: Kind) -> None:
    assert kind_of(counter) is kind


def test_modules_are_exact_and_nothing_beside_those_of_other_libraries() -> None:
    assert depends_on_environment("modules_imported")
    assert depends_on_environment("resident_bytes_peak")
    assert not depends_on_environment("request_rounds")
    assert not is_within("modules_imported", 400, 401)
    assert is_within("resident_bytes_peak", 100 << 20, 109 << 20)
    assert not is_within("resident_bytes_peak", 100 << 20, 111 << 20)

from __future__ import annotations

import pytest

from icebench.bench.gate.kinds import Kind, kind_of


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

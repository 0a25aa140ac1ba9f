"""The samples behind the figures of a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from icebench.bench.report.build import build_report
from icebench.bench.report.evidence import Evidence
from icebench.bench.report.html import render
from icebench.bench.report.model import Cell, Report, Section, Table
from tests.unit.bench.report.sample_run import DRIFT, FILTERS, record, sample_run


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(sample_run(), results_file="r")


def report_of(report: Report, *cells: Cell) -> Report:
    table = Table(title="t", columns=("a",), rows=tuple((cell,) for cell in cells))
    return replace(report, sections=(Section(key="s", title="S", explanation="", tables=(table,)),))


def test_a_figure_has_its_samples_in_its_unit_with_their_places_counters_and_meaning(report: Report) -> None:
    first = record(
        "filtered",
        "f",
        "scan_time_cold",
        "s",
        [0.01 * w for w in DRIFT],
        counters={"files_planned": 3},
        detail={"filter": "x"},
    )
    first = replace(first, query='select "a" from TABLE where x', places=tuple((n // 4, n % 4) for n in range(7)))
    single = record("filtered", "g", "scan_time_cold", "s", [2.5], detail={"filter": ""})
    evidence = Evidence(report_of(report, Cell(text="-"), *(Cell(text="", record=r) for r in (first, single, first))))
    data = evidence.data()
    assert (evidence.place(first), evidence.place(single), len(data["cases"])) == (0, 1, 2)
    (unit, samples, ends, *indices), (other_unit, others, none, *further) = data["cases"]
    assert (unit, samples) == ("ms", [10, 10.2, 9.8, 10.5, 10.1, 9.9, 13])
    assert (ends[:2], ends[2] >= 95) == ([9.8, 13], True)
    assert [data["shared"][i] for i in indices] == [
        [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1], [1, 2]],
        ["files planned"],
        [3],
        "filter: x",
        'select "a" from TABLE where x',
    ]
    assert (other_unit, others, none) == ("s", [2.5], [])
    assert [data["shared"][i] for i in further[-2:]] == ["filter: none", ""]


def test_every_time_of_a_comparison_opens_and_what_cases_share_is_kept_once(report: Report) -> None:
    page = render(report)
    data = json.loads(re.findall(r'id="evidence">(.*?)</script>', page)[0])
    opening = [int(place) for place in re.findall(r'data-case="(\d+)"', page)]
    assert sorted(opening) == list(range(len(data["cases"])))
    cells = [cell for s in report.sections for t in s.all_tables for row in t.rows for cell in row]
    assert len(opening) == sum(cell.record is not None for cell in cells) > 50
    assert len(data["shared"]) == len({json.dumps(each) for each in data["shared"]}) < len(opening)
    assert {f"filter: {text}" for text in FILTERS.values()} <= {
        each for each in data["shared"] if isinstance(each, str)
    }


def test_it_adds_at_most_a_fifth_to_a_page(report: Report) -> None:
    page = render(report)
    added = re.findall(r' data-case="\d+"|(?<=id="evidence">).*?(?=</script>)', page)
    assert 0 < 6 * sum(map(len, added)) < len(page)


def test_text_of_a_run_cannot_end_the_element_it_is_in(report: Report) -> None:
    bad = record("filtered", "f", "scan_time_cold", "s", [1.0, 2.0], detail={"filter": "a </script><b>"})
    assert "</script><b>" not in render(report_of(report, Cell(text="1", record=bad)))

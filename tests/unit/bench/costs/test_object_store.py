from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icebench
from icebench.bench.costs.object_store import (
    CROSS_REGION,
    LOCAL,
    PROFILES,
    SAME_REGION,
    Profile,
    Stage,
    Work,
    dollars_per_month,
    dollars_per_thousand_queries,
    icebench_work,
    seconds_on,
)

PLAIN = Profile(name="plain", latency_seconds=0.1, connection_bytes_per_second=100, network_bytes_per_second=250)
STAGES = st.builds(
    Stage,
    items=st.integers(0, 50),
    requests=st.integers(1, 3),
    in_flight=st.integers(1, 8),
    bytes_read=st.integers(0, 10**9),
)
WORK = st.builds(Work, phases=st.lists(st.lists(STAGES, min_size=1, max_size=3), max_size=4), seconds=st.floats(0, 10))


def of(*phases: list[Stage], seconds: float = 0.0) -> Work:
    return Work(phases=phases, seconds=seconds)


def test_requests_that_wait_for_one_another_add_up() -> None:
    assert seconds_on(of([Stage(items=1, requests=2)], [Stage(items=3)], seconds=1.0), PLAIN) == pytest.approx(1.5)


def test_requests_in_flight_come_in_waves() -> None:
    assert seconds_on(of([Stage(items=5, requests=2, in_flight=2)]), PLAIN) == pytest.approx(0.6)
    assert seconds_on(of([Stage(items=2, requests=2, in_flight=8)]), PLAIN) == pytest.approx(0.2)


def test_bytes_come_by_connections_in_use_and_no_faster_than_the_network() -> None:
    assert seconds_on(of([Stage(items=1, bytes_read=100, in_flight=8)]), PLAIN) == pytest.approx(1.1)
    assert seconds_on(of([Stage(items=2, bytes_read=200, in_flight=8)]), PLAIN) == pytest.approx(1.1)
    assert seconds_on(of([Stage(items=8, bytes_read=250, in_flight=8)]), PLAIN) == pytest.approx(1.1)


def test_stages_side_by_side_take_as_long_as_the_slowest_and_one_item_of_each_other() -> None:
    opens, reads = Stage(items=10, requests=2), Stage(items=10, bytes_read=50)
    assert seconds_on(of([opens, reads]), PLAIN) == pytest.approx(10 * 0.2 + 0.1 + 5 / 100)


@given(WORK)
def test_a_farther_store_is_never_faster_nor_cheaper(work: Work) -> None:
    near, middle, far = (seconds_on(work, profile) for profile in (LOCAL, SAME_REGION, CROSS_REGION))
    assert work.seconds <= near <= middle <= far
    prices = [dollars_per_thousand_queries(work, profile) for profile in PROFILES.values()]
    assert prices == sorted(prices)


def test_money() -> None:
    work = of([Stage(items=10, requests=2, bytes_read=2**30)])
    assert dollars_per_thousand_queries(work, SAME_REGION) == pytest.approx(20 * 0.0004)
    assert dollars_per_thousand_queries(work, CROSS_REGION) == pytest.approx(20 * 0.0004 + 1_000 * 0.02)
    assert dollars_per_month(1000 * 2**30) == pytest.approx(23)


@pytest.mark.parametrize("wrong", [{"items": -1}, {"requests": -1}, {"bytes_read": -1}, {"in_flight": 0}])
def test_stages_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="negative quantity, or nothing in flight"):
        replace(Stage(items=1), **wrong)


def test_the_work_of_this_engine_comes_from_its_counters() -> None:
    catalog = icebench.load_catalog("memory://object-store-costs")
    try:
        table = catalog.create_table(
            "db.t", pa.schema([("id", pa.int64()), ("part", pa.int32())]), partition_spec=[("part", "identity")]
        )
        for start in range(3):
            # Files above a size are opened and read in parts; smaller ones are read whole.
            ids = list(range(start * 80_000, (start + 1) * 80_000))
            table.append(pa.table({"id": pa.array(ids), "part": pa.array([i % 2 for i in ids], pa.int32())}))
        counters = icebench.Counters()
        scan = table.scan(counters=counters)
        assert scan.to_arrow().num_rows == 240_000
    finally:
        catalog.drop_table("db.t")
        catalog.close()
    work = icebench_work(counters.as_dict(), seconds=0.5, threads=2)
    sizes = [[(stage.items, stage.requests) for stage in phase] for phase in work.phases]
    counted = counters.as_dict()
    # metadata.json, the manifest list, three manifests, no deletes; six files opened, and the parts that are read.
    assert sizes[:5] == [[(1, 2)], [(1, 2)], [(3, 2)], [(0, 2)], [(0, 2)]]
    assert sizes[5] == [(6, 2), (counted["storage_requests_range_read"] - 6, 1)]
    assert [sum(stage.bytes_read for stage in phase) for phase in work.phases] == [
        0,
        0,
        counted["manifest_bytes_decoded"],
        0,
        0,
        counted["storage_bytes_read"] - counted["manifest_bytes_decoded"],
    ]


def test_a_plan_reads_no_files() -> None:
    counters = {"storage_requests_read": 4, "files_planned": 9, "delete_files_planned": 2, "storage_bytes_read": 90}
    work = icebench_work({**counters, "manifest_bytes_decoded": 40}, seconds=0.0, threads=2)
    assert work.requests == 2 + 2 * 4
    assert work.bytes_read == 90
    # The manifests of data are two waves of two, that of deletes comes after them; a connection sends 100 bytes/s.
    assert seconds_on(work, PLAIN) == pytest.approx((2 + 2 + 2 + 2) * 0.1 + 0.5 + 0.2)


def test_vectors_of_one_request_are_one_item() -> None:
    counters = {
        "storage_requests_read": 4,
        "storage_requests_range_read": 9,
        "files_planned": 8,
        "delete_files_planned": 8,
        "delete_files_loaded": 8,
        "vectors_coalesced": 7,
    }
    *_, deletes, data = icebench_work(counters, seconds=0.0, threads=2).phases
    assert [(stage.items, stage.requests) for stage in (*deletes, *data)] == [(1, 2), (8, 2), (0, 1)]


def test_half_of_what_takes_less_passes_meanwhile() -> None:
    def seconds(own: float, files: int) -> float:
        counters = {"storage_requests_read": 3, "storage_requests_range_read": 2 * files, "files_planned": files}
        work = icebench_work(counters, seconds=own, threads=8)
        return seconds_on(work, SAME_REGION) - seconds_on(replace(work, seconds=0.0), SAME_REGION)

    assert seconds(0.1, 8) == pytest.approx(0.05)
    # Of the waiting: metadata, list and manifest, 60 ms each; two requests until a footer is there, one for columns.
    assert seconds(10.0, 8) == pytest.approx(10.0 - 0.27 / 2)
    assert seconds(0.1, 1) == pytest.approx(0.1)  # of one file there is nothing else to read

import re
from datetime import date

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from bench.experiment import DeleteDefinition
from bench.measure.source_rows import SourceRows, delete_filters, workload_of
from bench.workloads.definitions import TpcdsWorkload
from bench.workloads.tpcds import Tpcds

WORKLOAD = Tpcds(scale=0.05, seed=2)


def deletes(*fractions: float, refresh: bool = False) -> DeleteDefinition:
    return DeleteDefinition(fractions=fractions, refresh=refresh, columns=())


@pytest.mark.parametrize(
    ("fraction", "name"), [(0.01, "1%"), (0.07, "7%"), (0.1, "10%"), (0.001, "0.1%"), (0.5, "50%")]
)
def test_a_fraction_is_about_that_share_of_the_rows(fraction: float, name: str) -> None:
    ((found, text),) = delete_filters(deletes(fraction), WORKLOAD).items()
    assert found == name
    match = re.fullmatch(r"ss_customer_sk <= (\d+)", text)
    assert match
    rows = WORKLOAD.row_count("store_sales")
    customers = WORKLOAD.batch("store_sales", 0, rows).column("ss_customer_sk")
    share = pc.sum(pc.less_equal(customers, int(match[1]))).as_py() / rows
    assert share == pytest.approx(fraction, rel=0.35 if fraction < 0.01 else 0.15)


def test_a_refresh_is_the_workloads_own() -> None:
    text = delete_filters(deletes(refresh=True), WORKLOAD)["refresh"]
    days = [date.fromisoformat(day) for day in re.findall(r"'([\d-]+)'", text)]
    assert list(zip(days[::2], days[1::2], strict=True)) == WORKLOAD.delete_ranges()
    assert text.count(" or ") == 2


def test_even_the_smallest_fraction_deletes_somebody() -> None:
    assert delete_filters(deletes(1e-9), WORKLOAD) == {"1e-07%": "ss_customer_sk <= 1"}


def test_a_definition_makes_its_generator() -> None:
    definition = TpcdsWorkload(scale=0.5, seed=7, skew=0.3, wide_decimals=True)
    assert workload_of(definition) == Tpcds(scale=0.5, seed=7, skew=0.3, wide_decimals=True)


def test_what_is_known_of_the_rows_needs_no_spark() -> None:
    def no_session() -> SparkSession:
        raise AssertionError("only the rows themselves need Spark")

    with SourceRows(WORKLOAD, files=3, spark=no_session) as rows:
        assert rows.count == WORKLOAD.row_count("store_sales")
        assert rows.schema.names[-1] == "ss_sold_date"
        assert rows.schema.names[:-1] == WORKLOAD.schema("store_sales").names

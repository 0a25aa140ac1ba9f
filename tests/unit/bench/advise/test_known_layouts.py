"""How good advice is: tables and queries for which the best layout is known, because all candidates were tried.

Every candidate of a case is modelled on all rows, where the model plans exactly the files that a table would; those
that read the fewest rows are built for real, and every fortieth of the others. Against the best of them stand the
advice from a quarter of the rows, and three rules of thumb: partition by date, sort by the commonest column of filters,
Z-order by all of them. Counts are bytes of the columns that queries need in the files that they plan, by weight; they
do not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.bench.advise.advice import Options, advise, mean
from icebench.bench.advise.candidates import columns_of, layout_of, orders, partitionings, todays_layout
from icebench.bench.advise.estimate import Estimator
from icebench.bench.advise.planned import StoredColumns
from icebench.bench.advise.queries import Queries, parse_queries
from icebench.bench.advise.rates import ASSUMED
from icebench.bench.advise.sample import Sample, take_sample
from icebench.bench.advise.trial import try_layouts
from icebench.bench.layouts.layout import TARGET_SIZE, Layout, Term
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.events import Events
from icebench.bench.workloads.log import Log
from icebench.bench.workloads.rows import Rows
from icebench.bench.workloads.tpcds import Tpcds
from icebench.bench.workloads.wide import Wide

_FILES = 40
_BUILT = 8
_SPREAD = 40
_TIMES = 4
_SHARE = 4
"""Advice is from one row in so many."""
_OPTIONS = Options(minimize="bytes")
_EVERYTHING = 1 << 40
_MOST_EXCESS = 0.5
"""The aim is 10 %; what misses it is in docs/design/advice.md."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, as it is today, and its queries.

    Args:
        name: For people.
        rows: Of the table, in their order.
        queries: SQL on ``t``, once for each n from 1 to `_TIMES`.
        date: By what a rule of thumb would partition.
        deleted: Rows that are deleted, merge-on-read.
    """

    name: str
    rows: Callable[[], pa.Table]
    queries: str
    date: Term | None = None
    deleted: str | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Mean bytes of a query, by weight: of layouts that were built from all rows, but for `predicted`."""

    case: str
    candidates: int
    built: int
    best: tuple[str, float]
    today: float
    advised: tuple[str, float]
    predicted: float
    rules: dict[str, float]

    @property
    def excess(self) -> float:
        """How much more the advised layout reads than the best."""
        return self.advised[1] / self.best[1] - 1

    @property
    def prediction_error(self) -> float:
        """Of the gain, as a share of what is gained."""
        gained = self.today - self.advised[1]
        return (self.today - self.predicted) / gained - 1 if gained else 0.0


def _rows(source: Rows, count: int, columns: Sequence[str]) -> Callable[[], pa.Table]:
    return lambda: pa.Table.from_batches(source.batches(0, count)).select(list(columns))


def _tpcds(table: str, scale: float, columns: Sequence[str]) -> Callable[[], pa.Table]:
    def made() -> pa.Table:
        rows = DatedSales.of(Tpcds(scale=scale, seed=1, skew=0.5, correlation=0.3, late=0.02), table)
        return pa.Table.from_batches([rows.batch(0, rows.rows)]).select(list(columns))

    return made


_STORE = ("ss_sold_date", "ss_item_sk", "ss_store_sk", "ss_customer_sk", "ss_quantity", "ss_net_paid")
_CATALOG = ("cs_sold_date", "cs_sold_date_sk", "cs_ship_date_sk", "cs_item_sk", "cs_bill_customer_sk", "cs_net_paid")
_INVENTORY = ("inv_date", "inv_item_sk", "inv_warehouse_sk", "inv_quantity_on_hand")
_LOG = ("logged_at", "host", "status", "user_id", "request_id", "bytes", "url")
_EVENT = Events(keys=20_000, batches=20, changes=1_000)
_WIDE = ("id", "c1", "c2", "c5", "c15", "c19", "c20", "c3", "c18")

_ITEM = "select ss_net_paid from t where ss_item_sk between {n} * 17 and {n} * 17 + 6;"
_DATES = """-- weight: 3
select ss_net_paid, ss_quantity from t
where ss_sold_date between date '1998-02-01' + interval '{n} month' and date '1998-02-28' + interval '{n} month';
select sum(ss_net_paid) from t
where ss_sold_date >= date '1999-03-01' + interval '{n} week'
and ss_sold_date < date '1999-03-08' + interval '{n} week';"""
_STORES = """
select ss_net_paid from t where ss_store_sk = {n} and ss_sold_date >= date '2000-01-01' + interval '{n} month';"""
_STORE_MONTH, _CATALOG_MONTH = (
    Term(column="ss_sold_date", transform="month"),
    Term(column="cs_sold_date", transform="month"),
)
_LOGGED_DAY = Term(column="logged_at", transform="day")

CASES = (
    Case(name="store_sales, one column", rows=_tpcds("store_sales", 0.02, _STORE), queries=_ITEM, date=_STORE_MONTH),
    Case(name="store_sales, date and item", rows=_tpcds("store_sales", 0.02, _STORE), queries=_DATES + _ITEM,
         date=_STORE_MONTH),
    Case(name="catalog_sales, correlated dates", rows=_tpcds("catalog_sales", 0.03, _CATALOG), queries="""-- weight: 2
select cs_net_paid from t where cs_ship_date_sk between 2450900 + {n} * 130 and 2450920 + {n} * 130;
select cs_net_paid from t
where cs_sold_date between date '1998-03-01' + interval '{n} month' and date '1998-03-14' + interval '{n} month';
select cs_net_paid from t
where cs_bill_customer_sk between {n} * 170 and {n} * 170 + 60 and cs_ship_date_sk > 2452000;""", date=_CATALOG_MONTH),
    Case(name="inventory, warehouse and date", rows=_tpcds("inventory", 0.02, _INVENTORY), queries="""-- weight: 4
select inv_quantity_on_hand from t where inv_warehouse_sk = 1 and inv_date >= date '1998-02-01' + interval '{n} month'
and inv_date < date '1998-05-01' + interval '{n} month';
select inv_quantity_on_hand from t where inv_item_sk in ({n}, {n} * 20 + 3);""",
         date=Term(column="inv_date", transform="month")),
    Case(name="log, hours and hosts", rows=_rows(Log(rows=40_000), 40_000, _LOG), queries="""-- weight: 2
select count(*), sum(bytes) from t where host = 'www64{n}.example'
and logged_at >= timestamp '2025-01-05 00:00:00' + interval '{n} day';
select url from t where logged_at between timestamp '2025-01-06 00:00:00' + interval '{n} day'
and timestamp '2025-01-06 05:59:59' + interval '{n} day';
select url, bytes from t where status >= 500 and logged_at >= timestamp '2025-01-20 00:00:00' + interval '{n} day';""",
         date=_LOGGED_DAY),
    Case(name="log, lookups", rows=_rows(Log(rows=40_000), 40_000, _LOG), queries="""-- weight: 3
select url from t where user_id = 555 + {n} * 9973;
select url, bytes from t where request_id like '{n}f7%';""", date=_LOGGED_DAY),
    Case(name="events, kind and time", rows=lambda: pa.Table.from_batches([_EVENT.rows(0, 40_000)]), queries="""
select sum(amount) from t where kind = 'paid' and happened_at >= timestamp '2025-01-01 01:00:00' + interval '{n} hour';
select key, amount from t where kind = 'returned' and amount < {n} * 100;
select amount from t where key between 500 + {n} * 1900 and 520 + {n} * 1900;""",
         date=Term(column="happened_at", transform="day")),
    Case(name="events, keys, with deletes", rows=lambda: pa.Table.from_batches([_EVENT.rows(0, 40_000)]), queries="""
-- weight: 2
select version, amount from t where key between 47 + {n} * 2111 and 60 + {n} * 2111;
select amount from t where kind = 'opened' and key < 2000 + {n} * 300;""",
         date=Term(column="happened_at", transform="day"), deleted="kind = 'packed'"),
    Case(name="wide, three columns", rows=_rows(Wide(rows=40_000, columns=24), 40_000, _WIDE), queries="""
select c3 from t
where c20 between date '2000-02-01' + interval '{n} month' and date '2000-02-20' + interval '{n} month';
select c18, c3 from t where c1 between 1000 + {n} * 90 and 1040 + {n} * 90 and c5 >= date '2000-06-01';
select c2 from t where c1 = 1007 + {n} * 60;""",
         date=Term(column="c20", transform="month")),
    Case(name="store_sales, with deletes", rows=_tpcds("store_sales", 0.02, _STORE),
         queries=_DATES + _STORES,
         date=_STORE_MONTH, deleted="ss_customer_sk < 300"),
)  # fmt: skip


def measure(case: Case, folder: Path) -> Outcome:
    """One case."""
    table = _today(case, folder)
    asked = parse_queries("\n".join(case.queries.format(n=n) for n in range(1, _TIMES + 1)), table)
    whole = take_sample(table, rows=_EVERYTHING, read_bytes=_EVERYTHING)
    today = todays_layout(table)
    options = Options(minimize="bytes", sample_rows=whole.rows.num_rows // _SHARE)
    found = advise(table, asked, options).recommendations
    advised = found[0].layout if found else None
    rules = dict(_rules(case, asked, table))
    candidates = _candidates(whole, asked, today)
    built = [*candidates[:_BUILT], *candidates[_BUILT::_SPREAD], *rules.values()]
    every = {each.name: each for each in built}
    if advised is not None:
        every[advised.name] = advised
    trials = try_layouts(list(every.values()), whole, asked.queries, today=replace(today, sort=()), read=False)
    costs = {trial.layout.name: mean(trial.readings, asked, _OPTIONS, ASSUMED) for trial in trials}
    cost = mean([whole.stored.reading(query) for query in asked.queries], asked, _OPTIONS, ASSUMED)
    best = min([*costs.items(), (today.name, cost)], key=lambda own: own[1])
    return Outcome(
        case=case.name,
        candidates=len(candidates),
        built=len(trials),
        best=best,
        today=cost,
        advised=(advised.name, costs[advised.name]) if advised else (today.name, cost),
        predicted=found[0].after if found else cost,
        rules={name: costs[layout.name] for name, layout in rules.items()},
    )


def _today(case: Case, folder: Path) -> icebench.Table:
    rows = case.rows()
    catalog = icebench.load_catalog(str(folder))
    measured = catalog.create_table("db.m", rows.schema)
    measured.append(rows)
    size = int(StoredColumns(measured).sizes.sum()) // _FILES
    table = catalog.create_table("db.t", rows.schema, properties={TARGET_SIZE: str(size)})
    table.append(rows)
    if case.deleted is not None:
        table.delete(case.deleted, mode="merge-on-read")
    return table


def _candidates(whole: Sample, asked: Queries, today: Layout) -> list[Layout]:
    """All partitionings with all orders by up to two columns, and curves through three; those of the fewest rows read
    first."""
    estimator = Estimator(whole, asked.queries)
    columns = columns_of(asked.queries, whole.table.schema())
    chosen = [order for order in orders(columns) if len(next(iter(order.values()), ())) < 3 or "sort" not in order]
    every = [layout_of(p, order) for p in partitionings(estimator, asked.queries, today) for order in chosen]
    costs = {each.name: mean(estimator.readings(estimator.estimate(each)), asked, _OPTIONS, ASSUMED) for each in every}
    return sorted(every, key=lambda each: costs[each.name])


def _rules(case: Case, asked: Queries, table: icebench.Table) -> Iterator[tuple[str, Layout]]:
    columns = columns_of(asked.queries, table.schema())
    if case.date is not None:
        yield "by date", layout_of((case.date,), {})
    yield "by the commonest", layout_of((), {"sort": columns[:1]})
    yield "z-order all", layout_of((), {"zorder": columns}) if len(columns) > 1 else layout_of((), {"sort": columns})


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_layout_that_was_tried_is_much_better_than_the_advised(case: Case, tmp_path: Path) -> None:
    """``pytest -s -m soak`` prints the figures of docs/design/advice.md."""
    got = measure(case, tmp_path)
    rules = ", ".join(f"{name} {size / got.best[1]:.2f}x" for name, size in got.rules.items())
    best = f"{got.best[1] / 1e3:.1f} kB: {got.best[0]}"
    print(f"| {got.case} | {got.candidates}, {got.built} | {best} | {got.today / got.best[1]:.1f}x ", end="")  # noqa: T201
    print(f"| {got.advised[0]} | {100 * got.excess:+.1f} % | {100 * got.prediction_error:+.1f} % | {rules} |")  # noqa: T201
    assert got.excess < _MOST_EXCESS
    assert got.advised[1] <= min(got.today, *got.rules.values())

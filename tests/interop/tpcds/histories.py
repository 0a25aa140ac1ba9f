"""Tables with the rows of TPC-DS at the end of eventful histories.

The rows come in parts, one for each step that adds rows. With them come copies of others, which the same step deletes
again: a query that sees one, or misses one of the others, has another answer. They are known by the column `EXTRA`,
which is dropped at the end.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import icebench
from icebench.engine.columnar.schemas import from_arrow_schema

FORMATS = ("parquet", "orc", "avro")

HISTORIES = {
    "evolved": "rows rename rows partition rows promote rows repartition rows replace rows unpartition rows",
    "positions": "positions partition positions sort positions merge_deletes repartition positions",
    "vectors": "upgrade partition positions zorder positions repartition positions",
    "keys": "keys partition keys repartition keys unpartition keys",
    "compacted": (
        "rows keys rename positions partition keys sort promote keys positions convert replace repartition "
        "positions hilbert keys binpack upgrade positions merge_deletes keys zorder positions cluster keys"
    ),
    "short": "keys rename partition promote sort replace upgrade positions keys keys",
    "plain": "rows",
}
"""The steps of each history: methods of `_History`. Each of the first four has one kind of change, "compacted" has all,
"short" most of them."""

EXTRA = "extra"
_ADDING = {"rows", "positions", "keys"}
_DATE_KEYS = {
    "inventory": "inv_date_sk",
    "store_sales": "ss_sold_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_returns": "wr_returned_date_sk",
}
_PRIMARY_KEYS = {
    "inventory": ("inv_date_sk", "inv_item_sk", "inv_warehouse_sk"),
    "store_sales": ("ss_item_sk", "ss_ticket_number"),
    "store_returns": ("sr_item_sk", "sr_ticket_number"),
    "catalog_sales": ("cs_item_sk", "cs_order_number"),
    "catalog_returns": ("cr_item_sk", "cr_order_number"),
    "web_sales": ("ws_item_sk", "ws_order_number"),
    "web_returns": ("wr_item_sk", "wr_order_number"),
}
"""Of all other tables it is the first column."""


def write_table(
    catalog: icebench.Catalog, name: str, rows: pa.Table, *, history: str, file_format: str
) -> icebench.Table:
    """Create the table `tpcds.<name>` and let it go through a history of `HISTORIES`; at its end it has `rows`."""
    made = _History(catalog, name, rows, HISTORIES[history].split(), file_format)
    for step in made.steps:
        getattr(made, step)()
    assert made.next_part == len(made.parts)
    return made.table.update_schema(lambda schema: schema.drop_column(EXTRA))


class _History:
    """A table on its way to `rows`.

    Before the step "rename" columns of one type have each other's names; before "promote" numbers have narrower types;
    before "replace" the column with the most nulls is not there, and another one has its name.
    """

    def __init__(
        self, catalog: icebench.Catalog, name: str, rows: pa.Table, steps: list[str], file_format: str
    ) -> None:
        self.steps = steps
        self.next_part = 0
        self._rows = rows
        self._random = np.random.default_rng(zlib.crc32(name.encode()))
        self._key = _PRIMARY_KEYS.get(name, (rows.schema.names[0],))
        self._extras = 0
        keys = rows.select(self._key)
        assert keys.group_by(list(self._key)).aggregate([]).num_rows == keys.num_rows, (
            f"{self._key} is no key of {name}"
        )
        most_nulls = max(rows.schema.names, key=lambda column: rows[column].null_count)
        self._unborn = most_nulls if "replace" in steps and rows[most_nulls].null_count else None
        self._names = dict(zip(rows.schema.names, rows.schema.names, strict=True))
        if "rename" in steps:
            self._names.update(_exchanged(rows.schema))
        self.parts = self._cut()
        fields = [(self._names[field.name], self._first_type(field)) for field in rows.schema]
        self.table = catalog.create_table(
            f"tpcds.{name}",
            pa.schema([*fields, (EXTRA, pa.int32())]),
            properties={
                "format-version": "2",
                "write.format.default": file_format,
                "write.target-file-size-bytes": "2000000",
                "write.parquet.row-group-size-bytes": "200000",
                "write.orc.stripe-size-bytes": "200000",
            },
        )
        date = _DATE_KEYS.get(name)
        texts = [field.name for field in rows.schema if field.type == pa.string()]
        few = [column for column in texts if 2 <= len(rows[column].unique()) <= 8]
        self._partitioned = {self._key[0]: "bucket[3]"}
        self._partitioned |= {date: "truncate[500]"} if date else {few[0]: "identity"} if few else {}
        self._repartitioned = {date or rows.schema.names[-1]: "bucket[2]"}
        self._repartitioned |= {few[-1]: "truncate[1]"} if few and not date else {}
        self._curve = [date or rows.schema.names[-1], self._key[-1]]
        self._spec: list[str] = []

    def _cut(self) -> list[pa.Table]:
        """The rows in parts, one for each step that adds some. Those before "replace" have a null in that column."""
        parts = sum(step in _ADDING for step in self.steps)
        part = self._random.integers(parts, size=self._rows.num_rows)
        if self._unborn is not None:
            before = sum(step in _ADDING for step in self.steps[: self.steps.index("replace")])
            has_value = self._rows[self._unborn].is_valid().to_numpy()
            part = np.where(has_value, self._random.integers(before, parts, size=len(part)), part)
        return [self._rows.filter(pa.array(part == number)) for number in range(parts)]

    def _first_type(self, field: pa.Field) -> pa.DataType:
        if field.name == self._unborn:
            return pa.float64()
        if "promote" in self.steps and pa.types.is_int64(field.type):
            return pa.int32()
        if "promote" in self.steps and field.type == pa.decimal128(7, 2):
            largest = pc.max(pc.abs(self._rows[field.name])).as_py()
            return pa.decimal128(5, 2) if largest is not None and largest < 1000 else field.type
        return field.type

    def _now(self, rows: pa.Table, extra: int | None = None) -> pa.Table:
        """The rows under the present names and in the present types, known as `extra`."""
        columns = {self._names[name]: rows[name] for name in rows.schema.names if name != self._unborn}
        if self._unborn is not None:
            columns[self._names[self._unborn]] = pa.array(self._random.random(rows.num_rows))
        columns[EXTRA] = pa.array([extra] * rows.num_rows, pa.int32())
        return pa.table(columns).select(self._schema.names).cast(self._schema)

    @property
    def _schema(self) -> pa.Schema:
        return self.table.scan().arrow_schema.remove_metadata()

    def _next(self) -> pa.Table:
        self.next_part += 1
        return self.parts[self.next_part - 1]

    def _some(self, rows: pa.Table) -> pa.Table:
        """A tenth of the rows, at least one if there are any."""
        count = min(rows.num_rows, max(1, rows.num_rows // 10))
        return rows.take(self._random.choice(rows.num_rows, count, replace=False))

    def _append_mixed(self, *tables: pa.Table) -> None:
        rows = pa.concat_tables(tables)
        self.table.append(rows.take(self._random.permutation(rows.num_rows)))

    def _extra_rows(self) -> pa.Table:
        self._extras += 1
        return self._now(self._some(self._rows), self._extras)

    # Steps that add rows.

    def rows(self) -> None:
        """Append the next part."""
        self.table.append(self._now(self._next()))

    def positions(self) -> None:
        """Append it with other rows, and delete those by position: in format version 3 by deletion vectors."""
        self._append_mixed(self._now(self._next()), self._extra_rows())
        self.table.delete(f"{EXTRA} = {self._extras}", "merge-on-read")

    def keys(self) -> None:
        """Append it with other rows, and delete those by key; some rows have wrong values and are updated by key."""
        part = self._next()
        late = self._some(part)
        key = [self._names[name] for name in dict.fromkeys([*self._key, *self._spec])]
        wrong = self._now(late.take(self._random.permutation(late.num_rows)))
        for name in key:
            wrong = wrong.set_column(wrong.schema.get_field_index(name), name, self._now(late)[name])
        on_time = part.join(late.select(self._key), list(self._key), join_type="left anti").select(part.schema.names)
        extra = self._extra_rows()
        self._append_mixed(self._now(on_time), wrong, extra)
        by_extra = [*key, EXTRA] if self._spec else [EXTRA]
        stream = self.table.keyed_stream(by_extra)
        stream.delete(extra.select(by_extra))
        stream.commit()
        stream = self.table.keyed_stream(key)
        stream.update(self._now(late))
        stream.commit()

    # Steps that change the schema.

    def rename(self) -> None:
        """Give each column the other one's name, and bring the last column to the front."""

        def edit(schema: Any) -> None:
            for name, now in self._names.items():
                schema.rename_column(now, f"{name}_")
            for name, now in self._names.items():
                schema.rename_column(now, name)
            schema.move_first(EXTRA)

        self.table.update_schema(edit)
        self._names = {name: name for name in self._names}

    def promote(self) -> None:
        """Widen integers and decimals."""

        def edit(schema: Any) -> None:
            for field in self._rows.schema:
                if field.name == self._unborn:
                    continue
                if pa.types.is_int64(field.type):
                    schema.promote_column(self._names[field.name], icebench.LONG)
                elif pa.types.is_decimal(field.type):
                    wide = icebench.DecimalType(field.type.precision, field.type.scale)
                    schema.promote_column(self._names[field.name], wide)

        self.table.update_schema(edit)

    def replace(self) -> None:
        """Drop a column, and add another one of its name."""
        if self._unborn is None:
            return
        name = self._names[self._unborn]
        wanted = pa.schema([(name, self._rows.schema.field(self._unborn).type)])
        self.table.update_schema(lambda schema: schema.drop_column(name))
        self.table.update_schema(lambda schema: schema.union_by_name(from_arrow_schema(wanted)))
        self._unborn = None

    # Steps that change the partition spec.

    def partition(self) -> None:
        self._set_spec(self._partitioned)

    def repartition(self) -> None:
        self._set_spec(self._repartitioned)

    def unpartition(self) -> None:
        self._set_spec({})

    def _set_spec(self, transforms: dict[str, str]) -> None:
        def edit(spec: Any) -> None:
            for former in self.table.spec.fields:
                spec.drop_field(former.name)
            for column, transform in transforms.items():
                if column != self._unborn:
                    spec.add_field(self._names[column], transform)

        self.table.update_spec(edit)
        self._spec = [column for column in transforms if column != self._unborn]

    # Maintenance.

    def upgrade(self) -> None:
        self.table.upgrade_format(3)

    def binpack(self) -> None:
        self.table.maintenance.rewrite_data_files(rewrite_all=True)

    def sort(self) -> None:
        self.table.maintenance.rewrite_data_files("sort", sort_order=self._curve_now, rewrite_all=True)

    def zorder(self) -> None:
        self.table.maintenance.rewrite_data_files("zorder", zorder_by=self._curve_now, rewrite_all=True)

    def hilbert(self) -> None:
        self.table.maintenance.rewrite_data_files("hilbert", hilbert_by=self._curve_now, rewrite_all=True)

    def cluster(self) -> None:
        keys = ",".join(self._curve_now)
        self.table.set_properties(
            {
                "icebench.clustering.strategy": "zorder",
                "icebench.clustering.keys": keys,
                "icebench.clustering.fan-in": "2",
            }
        )
        self.table.maintenance.cluster()

    def convert(self) -> None:
        self.table.maintenance.convert_equality_deletes()

    def merge_deletes(self) -> None:
        self.table.maintenance.rewrite_position_deletes(rewrite_all=True)

    @property
    def _curve_now(self) -> list[str]:
        return [self._names[name] for name in self._curve if name != self._unborn]


def _exchanged(schema: pa.Schema) -> dict[str, str]:
    """Pairs of columns of one type, each with the other's name."""
    names: dict[str, str] = {}
    for kind in {field.type for field in schema}:
        alike = [field.name for field in schema if field.type == kind]
        for left, right in zip(alike[::2], alike[1::2], strict=False):
            names |= {left: right, right: left}
    return names

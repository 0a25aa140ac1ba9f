"""Random histories of one table against plain Python rows: after every step each branch, at the end every snapshot."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import icebench
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.maintenance.maintenance import Maintenance
from icebench.engine.maintenance.rewrite_deletes import RewrittenDeletes
from icebench.engine.operations.row_changes import Mode
from icebench.engine.spec.snapshots import Snapshot
from tests.property.table_copies import rewrite_and_copy

Row = dict[int, Any]
"""Column -> value; columns are numbers of the model, so that a name may move from one to another."""

ID, P, N = 0, 1, 2
TYPES = {ID: pa.int64(), P: pa.string(), N: pa.int32()}
MODES: st.SearchStrategy[Mode] = st.sampled_from(["copy-on-write", "merge-on-read"])
IDS = st.integers(0, 6)
TEXTS = st.sampled_from([None, "a", "b", "c"])
NUMBERS = st.none() | st.integers(0, 3)
ROWS = st.lists(st.fixed_dictionaries({ID: IDS, P: TEXTS, N: NUMBERS}), min_size=1, max_size=5)
UNIQUE_ROWS = st.lists(
    st.fixed_dictionaries({ID: IDS, P: TEXTS, N: NUMBERS}), min_size=1, max_size=4, unique_by=lambda row: row[ID]
)


@dataclass(frozen=True)
class Filter:
    """A filter over columns of the model, and the rows that it is true for."""

    column: int
    text: str
    matches: Callable[[Any], bool]


FILTERS = st.one_of(
    IDS.map(lambda v: Filter(ID, f"{{}} < {v}", lambda x: x < v)),
    IDS.map(lambda v: Filter(ID, f"{{}} = {v}", lambda x: x == v)),
    st.integers(0, 3).map(lambda v: Filter(N, f"{{}} <> {v}", lambda x: x is not None and x != v)),
    st.just(Filter(N, "{} is null", lambda x: x is None)),
    st.sampled_from(["a", "b"]).map(lambda v: Filter(P, f"{{}} = '{v}'", lambda x: x == v)),
    st.just(Filter(ID, "{} is not null", lambda _: True)),
)
CHANGES = st.lists(st.tuples(st.sampled_from("IUD"), IDS, TEXTS, NUMBERS), min_size=1, max_size=6)


@dataclass(frozen=True)
class State:
    """What a snapshot holds, and the columns of the table when it was made, with their names."""

    columns: dict[int, str]
    rows: tuple[Row, ...]

    def counted(self, columns: Iterable[int]) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row.get(column) for column in columns) for row in self.rows)


def bag(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


class TableMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.mkdtemp()
        self.catalog = icebench.load_catalog(self.place)
        self.columns = {ID: "id", P: "p", N: "n"}
        self.next_column = 3
        self.states: dict[int, State] = {}
        self.heads: dict[str, int] = {}
        self.partitioned: set[str] = set()
        self.copied: str | None = None
        self.copied_to = f"{self.place}/elsewhere/and further/t"

    @initialize(version=st.sampled_from([1, 2, 3]), merge=st.sampled_from(["2", "100"]))
    def create(self, version: int, merge: str) -> None:
        schema = pa.schema([pa.field(self.columns[i], type_) for i, type_ in TYPES.items()])
        properties = {"format-version": str(version), "commit.manifest.min-count-to-merge": merge}
        self.table = self.catalog.create_table("db.t", schema, properties=properties)

    def teardown(self) -> None:
        if hasattr(self, "table"):
            self.snapshots_hold_what_they_should()
            self.copy()
            # Nothing is left at the old place that the copy could lean on.
            shutil.rmtree(f"{self.place}/db")
            metadata = f"{self.copied_to}/metadata/{self.copied}"
            self.table = icebench.load_table(metadata, relocate={}, verify="strict")
            self.snapshots_hold_what_they_should()
            self.branches_hold_what_they_should()
        self.catalog.close()
        shutil.rmtree(self.place)

    def snapshots_hold_what_they_should(self) -> None:
        for snapshot_id, state in self.states.items():
            assert self.read(state.columns, snapshot_id=snapshot_id) == state.counted(state.columns)

    # ---- the model ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        return self.table.metadata.format_version

    def rows(self, branch: str) -> list[Row]:
        head = self.heads.get(branch, self.heads.get("main"))
        old = () if head is None else self.states[head].rows
        return [{column: row.get(column) for column in self.columns} for row in old]

    def made(self, branch: str, snapshot: Snapshot | None, rows: Sequence[Row]) -> None:
        if snapshot is not None:
            self.states[snapshot.snapshot_id] = State(dict(self.columns), tuple(rows))
            self.heads[branch] = snapshot.snapshot_id

    def arrow(self, rows: Sequence[Row], columns: Iterable[int] | None = None) -> pa.Table:
        chosen = list(self.columns if columns is None else columns)
        return pa.table(
            {self.columns[c]: pa.array([row.get(c) for row in rows], TYPES.get(c, pa.int64())) for c in chosen}
        )

    def read(self, columns: dict[int, str], **which: Any) -> Counter[tuple[Any, ...]]:
        read = self.table.scan(**which).to_arrow()
        assert read.column_names == list(columns.values())
        return Counter(zip(*(read[name].to_pylist() for name in columns.values()), strict=True))

    def mode(self, mode: Mode) -> Mode:
        return "copy-on-write" if self.version == 1 else mode

    def split(self, branch: str, filter: Filter) -> tuple[list[Row], list[Row], str]:
        rows = self.rows(branch)
        hit = [row for row in rows if filter.matches(row[filter.column])]
        rest = [row for row in rows if not filter.matches(row[filter.column])]
        return hit, rest, filter.text.format(self.columns[filter.column])

    branches = st.sampled_from(["main", "main", "main", "side"])

    # ---- rows --------------------------------------------------------------------------------------------------------

    @rule(rows=ROWS, branch=branches, extra=NUMBERS)
    def append(self, rows: list[Row], branch: str, extra: int | None) -> None:
        rows = [row | {c: extra for c in self.columns if c > N} for row in rows]
        before = self.rows(branch)
        self.made(branch, self.table.append(self.arrow(rows), branch=branch), before + rows)

    @rule(filter=FILTERS, mode=MODES, branch=branches)
    def delete(self, filter: Filter, mode: Mode, branch: str) -> None:
        hit, rest, text = self.split(branch, filter)
        snapshot = self.table.delete(text, self.mode(mode), branch=branch)
        assert (snapshot is None) == (not hit)
        self.made(branch, snapshot, rest)

    @rule(filter=FILTERS, rows=ROWS, branch=branches)
    def overwrite(self, filter: Filter, rows: list[Row], branch: str) -> None:
        _, rest, text = self.split(branch, filter)
        self.made(branch, self.table.overwrite(self.arrow(rows), text, branch=branch), rest + rows)

    @precondition(lambda self: not self.partitioned)
    @rule(rows=ROWS)
    def overwrite_all(self, rows: list[Row]) -> None:
        if self.table.spec.is_unpartitioned:
            self.made("main", self.table.overwrite_partitions(self.arrow(rows)), rows)

    @rule(filter=FILTERS, mode=MODES, branch=branches, value=NUMBERS)
    def update(self, filter: Filter, mode: Mode, branch: str, value: int | None) -> None:
        hit, rest, text = self.split(branch, filter)
        snapshot = self.table.update(text, {self.columns[N]: value, "p": "u"}, self.mode(mode), branch=branch)
        assert (snapshot is None) == (not hit)
        self.made(branch, snapshot, rest + [row | {N: value, P: "u"} for row in hit])

    @rule(rows=UNIQUE_ROWS, mode=MODES, branch=branches)
    def upsert(self, rows: list[Row], mode: Mode, branch: str) -> None:
        keys = {row[ID] for row in rows}
        rest = [row for row in self.rows(branch) if row[ID] not in keys]
        self.made(branch, self.table.upsert(self.arrow(rows), ["id"], self.mode(mode), branch=branch), rest + rows)

    @precondition(lambda self: self.version > 1)
    @rule(changes=CHANGES, branch=branches)
    def stream(self, changes: list[tuple[str, int, str | None, int | None]], branch: str) -> None:
        before, own, seen = self.rows(branch), dict[int, Row](), set[int]()
        stream = self.table.keyed_stream(["id"], branch=branch)
        for kind, key, text, number in changes:
            row = {ID: key, P: text, N: number}
            if kind == "I":
                stream.insert(self.arrow([row]))
            elif kind == "U":
                stream.update(self.arrow([row]))
            else:
                stream.delete(self.arrow([row], [ID]))
            if kind == "D" or (kind == "U" and key not in seen):
                before = [old for old in before if old[ID] != key]
            own.pop(key, None)
            if kind != "D":
                own[key] = row
            seen.add(key)
        self.made(branch, stream.commit(), before + list(own.values()))

    @rule(rows=ROWS, filter=FILTERS, mode=MODES)
    def transaction(self, rows: list[Row], filter: Filter, mode: Mode) -> None:
        before = self.rows("main") + rows
        with self.table.transaction() as changes:
            appended = changes.append(self.arrow(rows))
            deleted = changes.delete(filter.text.format(self.columns[filter.column]), self.mode(mode))
        self.made("main", appended, before)
        self.made("main", deleted, [row for row in before if not filter.matches(row[filter.column])])

    # ---- metadata ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.columns) < 6)
    @rule()
    def add_column(self) -> None:
        taken = set(self.columns.values())
        name = next(n for n in ("x", "y", "z", "n", "v", "w") if n not in taken)
        self.table.update_schema(lambda s: s.add_column(name, icebench.LONG))
        self.columns[self.next_column] = name
        self.next_column += 1

    @rule(data=st.data())
    def rename_column(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from([c for c in self.columns if c >= N]))
        free = [n for n in ("n", "x", "y", "z", "v", "w", "u") if n not in self.columns.values()]
        name, old = data.draw(st.sampled_from(free)), self.columns[column]
        self.table.update_schema(lambda s: s.rename_column(old, name))
        self.columns[column] = name

    @precondition(lambda self: any(column > N for column in self.columns))
    @rule(data=st.data())
    def drop_column(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from([c for c in self.columns if c > N]))
        name = self.columns.pop(column)
        self.table.update_schema(lambda s: s.drop_column(name))

    @rule(
        field=st.sampled_from([("p", "identity", "by_p"), ("id", "bucket[2]", "by_id"), ("p", "truncate[1]", "by_t")])
    )
    def evolve_spec(self, field: tuple[str, str, str]) -> None:
        column, transform, name = field
        if name in self.partitioned:
            self.table.update_spec(lambda s: s.drop_field(name))
            self.partitioned.discard(name)
        else:
            self.table.update_spec(lambda s: s.add_field(column, icebench.parse_transform(transform), name=name))
            self.partitioned.add(name)

    @precondition(lambda self: self.version < 3)
    @rule()
    def upgrade(self) -> None:
        self.table.upgrade_format(self.version + 1)

    @precondition(lambda self: "main" in self.heads)
    @rule()
    def branch(self) -> None:
        self.table.create_branch("side", overwrite=True)
        self.heads["side"] = self.heads["main"]

    @precondition(lambda self: "main" in self.heads)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        line, at = [], self.table.metadata.current_snapshot_id
        while at is not None:
            line.append(at)
            at = self.table.metadata.snapshot(at).parent_snapshot_id
        self.heads["main"] = data.draw(st.sampled_from(line))
        self.table.rollback(snapshot_id=self.heads["main"])

    @precondition(lambda self: "main" in self.heads)
    @rule()
    def rewrite_manifests(self) -> None:
        change = RewriteManifests(by_partition=True)
        self.table._target(None).commit([change])
        self.table.refresh()
        self.made("main", change.snapshot_in(self.table.metadata), self.rows("main"))

    @precondition(lambda self: "main" in self.heads)
    @rule(
        how=st.sampled_from(["binpack", "sort", "zorder", "hilbert"]),
        where=st.none() | FILTERS,
        rewrite_all=st.booleans(),
        dangling=st.booleans(),
        branch=branches,
        memory=st.sampled_from([1, 1 << 30]),
    )
    def rewrite_data_files(
        self, *, how: Any, where: Filter | None, rewrite_all: bool, dangling: bool, branch: str, memory: int
    ) -> None:
        if branch not in self.heads:
            return
        by = [self.columns[N], "id"]
        columns, before = self.with_lineage(branch)
        done = self.table.maintenance.rewrite_data_files(
            how,
            where=None if where is None else where.text.format(self.columns[where.column]),
            sort_order=by if how == "sort" else None,
            zorder_by=by if how == "zorder" else (),
            hilbert_by=by if how == "hilbert" else (),
            branch=branch,
            rewrite_all=rewrite_all,
            min_input_files=2,
            remove_dangling_deletes=dangling,
            sort_memory_bytes=memory,
        )
        assert bag(self.table.scan(columns=columns, ref=branch).to_arrow()) == before
        assert not any("_sorting" in info.location for info in self.table.store.list(self.table.location))
        for snapshot in done.snapshots:
            self.made(branch, snapshot, self.rows(branch))

    @precondition(lambda self: "main" in self.heads)
    @rule(
        how=st.sampled_from(["sort", "sort", "zorder", "hilbert"]),
        fan_in=st.sampled_from("224"),
        branch=branches,
        partial=st.booleans(),
    )
    def cluster(self, *, how: str, fan_in: str, branch: str, partial: bool) -> None:
        if branch not in self.heads:
            return
        names = ["strategy", "keys", "fan-in"]
        values = [how, f"{self.columns[N]}, id", fan_in]
        self.table.set_properties({f"icebench.clustering.{n}": v for n, v in zip(names, values, strict=True)})
        columns, before = self.with_lineage(branch)
        done = self.table.maintenance.cluster(branch=branch, partial_progress=partial)
        assert bag(self.table.scan(columns=columns, ref=branch).to_arrow()) == before
        for snapshot in done.snapshots:
            self.made(branch, snapshot, self.rows(branch))
        assert self.table.maintenance.cluster(branch=branch).snapshots == ()

    @precondition(lambda self: "main" in self.heads)
    @rule(branch=branches, rewrite_all=st.booleans(), granularity=st.sampled_from(["file", "partition"]))
    def rewrite_position_deletes(self, branch: str, granularity: str, *, rewrite_all: bool) -> None:
        self.table.set_properties({"write.delete.granularity": granularity})

        def rewrite(maintenance: Maintenance) -> RewrittenDeletes:
            foretold = maintenance.rewrite_position_deletes(rewrite_all=rewrite_all, branch=branch, dry_run=True)
            done = maintenance.rewrite_position_deletes(rewrite_all=rewrite_all, branch=branch)
            assert (foretold.removed_delete_files, foretold.removed_bytes, foretold.snapshot) == (
                done.removed_delete_files,
                done.removed_bytes,
                None,
            )
            assert foretold.added_delete_files == done.added_delete_files
            return done

        self.rewrite_deletes(branch, "position_deletes", rewrite)

    @precondition(lambda self: "main" in self.heads)
    @rule(branch=branches)
    def convert_equality_deletes(self, branch: str) -> None:
        self.rewrite_deletes(branch, "equality_deletes", lambda m: m.convert_equality_deletes(branch=branch))

    def rewrite_deletes(self, branch: str, kind: str, rewrite: Callable[[Maintenance], RewrittenDeletes]) -> None:
        if branch not in self.heads:
            return
        columns, before = self.with_lineage(branch)
        done = rewrite(self.table.maintenance)
        assert bag(self.table.scan(columns=columns, ref=branch).to_arrow()) == before
        self.made(branch, done.snapshot, self.rows(branch))
        files = self.table.inspect.delete_files(snapshot_id=self.heads[branch]).to_pylist()
        if kind == "equality_deletes":
            assert all(file["content"] == 1 for file in files)
        elif self.version == 3:
            assert all(file["content"] == 2 or file["file_format"] == "PUFFIN" for file in files)

    def with_lineage(self, branch: str) -> tuple[list[str], list[str]]:
        """Columns that a rewrite keeps, and their rows."""
        columns, lineage = list(self.columns.values()), ["_row_id", "_last_updated_sequence_number"]
        found = self.table.scan(columns=[*columns, *lineage], ref=branch).to_arrow()
        # Rows from before an upgrade get their ids with the next commit, whatever it is.
        columns += lineage if self.version == 3 and not found["_row_id"].null_count else []
        return columns, bag(found.select(columns))

    @rule()
    def copy(self) -> None:
        """Bring the copy of the table up to date, by what came since the last time."""
        if self.copied == self.table.metadata_location.rpartition("/")[2]:
            return
        done = rewrite_and_copy(self.table, self.copied_to, f"{self.place}/staging", start_version=self.copied)
        self.copied = done.latest_version

    # ---- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def branches_hold_what_they_should(self) -> None:
        if not hasattr(self, "table"):
            return
        for branch in self.heads:
            expected = Counter(tuple(row[column] for column in self.columns) for row in self.rows(branch))
            assert self.read(self.columns, ref=branch) == expected, branch
            assert self.table.scan(ref=branch).count() == expected.total()
        if self.version == 3 and "main" in self.heads:
            ids = self.table.scan(columns=["id", "_row_id"]).to_arrow()["_row_id"].drop_null().to_pylist()
            assert len(set(ids)) == len(ids)


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=20, stateful_step_count=10)

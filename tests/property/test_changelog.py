"""Changelogs of random histories against plain Python rows: the rows before plus the changes are the rows after."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import FileRef, ref_of
from icebench.engine.plan.scan import table_scan
from icebench.engine.read.matches import superseded_by_rewrite
from icebench.engine.read.plans import planned_files, read_plan
from icebench.engine.write.data_files import write_data_files, written_schema
from tests.property.test_table_machine import FILTERS, ID, Filter, Row, TableMachine

Changed = Counter[tuple[Any, ...]]


class ChangelogMachine(TableMachine):
    """The same histories, with rewrites of data files among them; checked where a history ends."""

    @precondition(lambda self: "main" in self.heads)
    @rule()
    def rewrite_data(self) -> None:
        """Put all live rows into new files: deletes are applied, rows keep their ids, nothing changes."""
        table, metadata = self.table, self.table.metadata
        scan = table_scan(metadata, table.store)
        plan = scan.plan()
        files = list(planned_files(plan))
        if not files:
            return
        written = write_data_files(
            read_plan(plan, table.store, projection=written_schema(metadata)).read_all(),
            metadata=metadata,
            store=table.store,
            schema=written_schema(metadata),
        )
        refs = [ref_of(file) for file in files]
        change = RewriteFiles(
            data_files=written,
            removed_data=refs,
            validation=Validation(
                starting_snapshot_id=metadata.current_snapshot_id, referenced=refs, refuse_deletes="all"
            ),
            removed_deletes=[
                FileRef(
                    file_path=deletes.file_path,
                    spec_id=file.spec_id,
                    partition=file.partition,
                    content_offset=deletes.content_offset if deletes.is_vector else None,
                )
                for file in files
                for deletes in superseded_by_rewrite(file)
            ],
        )
        table._target(None).commit([change])
        table.refresh()
        self.made("main", table.current_snapshot, self.rows("main"))

    # The reads after every step are the business of the other test.
    @invariant()
    def branches_hold_what_they_should(self) -> None:
        pass

    @precondition(lambda self: "main" in self.heads)
    @rule(data=st.data(), filter=FILTERS, updates=st.booleans(), inclusive=st.booleans())
    def changelog(self, data: st.DataObject, filter: Filter, updates: bool, inclusive: bool) -> None:
        line = self.line()
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(line) - 1)] * 2)))
        chosen = data.draw(st.sampled_from([filter, None]))
        self.check_changes(line[first : last + 1], line[first], chosen, updates=updates)
        start = line[first]
        if inclusive and start is not None:
            self.check_inclusive(line[first - 1 : last + 1], start, line[last])

    def teardown(self) -> None:
        if hasattr(self, "table") and "main" in self.heads:
            line = self.line()
            self.check_changes(line, None, None, updates=False)
            self.check_net(line, None)
        self.states.clear()  # reading each is the business of the other test, too
        super().teardown()

    def line(self) -> list[int | None]:
        """The snapshots of main, oldest first, after None for the empty table."""
        at, found = self.table.metadata.current_snapshot_id, list[int | None]()
        while at is not None:
            found.append(at)
            at = self.table.metadata.snapshot(at).parent_snapshot_id
        return [None, *reversed(found)]

    def at(self, snapshot_id: int | None, filter: Filter | None = None) -> Changed:
        """The rows of a snapshot, as the columns of now show them."""
        rows: tuple[Row, ...] = () if snapshot_id is None else self.states[snapshot_id].rows
        return Counter(
            tuple(row.get(column) for column in self.columns)
            for row in rows
            if filter is None or filter.matches(row.get(filter.column))
        )

    def changes(self, **options: Any) -> list[tuple[str, int, int, tuple[Any, ...]]]:
        """Type, ordinal, snapshot and values of each change."""
        found = self.table.changelog_scan(**options).to_arrow()
        assert found.column_names == [*self.columns.values(), "_change_type", "_change_ordinal", "_commit_snapshot_id"]
        *values, kinds, ordinals, ids = (column.to_pylist() for column in found.columns)
        assert ordinals == sorted(ordinals)
        return list(zip(kinds, ordinals, ids, zip(*values, strict=True), strict=True))

    def check_changes(self, line: list[int | None], start: int | None, filter: Filter | None, *, updates: bool) -> None:
        options: dict[str, Any] = {"from_snapshot_id": start, "to_snapshot_id": line[-1]}
        if filter is not None:
            options["filter"] = filter.text.format(self.columns[filter.column])
        if line[-1] is None:
            return
        if updates and self.version < 3:
            self.check_updates(line, options, filter)
            return
        found = self.changes(**options, compute_updates=updates)
        changing = [i for i in line[1:] if i is not None and self.table.metadata.snapshot(i).operation != "replace"]
        assert {(o, i) for _, o, i, _ in found} <= set(enumerate(changing))
        for before, after in pairwise(line):
            own = [(kind, row) for kind, _, snapshot_id, row in found if snapshot_id == after]
            gone = Counter(row for kind, row in own if kind in {"DELETE", "UPDATE_BEFORE"})
            come = Counter(row for kind, row in own if kind in {"INSERT", "UPDATE_AFTER"})
            old, new = self.at(before, filter), self.at(after, filter)
            assert not gone - old
            assert old - gone + come == new
            if self.version < 3:
                assert (gone, come) == (old - new, new - old)
            order = {"DELETE": 0, "UPDATE_BEFORE": 1, "UPDATE_AFTER": 1, "INSERT": 2}
            assert [order[kind] for kind, _ in own] == sorted(order[kind] for kind, _ in own)
            pairs = [kind for kind, _ in own if kind.startswith("UPDATE")]
            assert pairs == ["UPDATE_BEFORE", "UPDATE_AFTER"] * (len(pairs) // 2)

    def check_updates(self, line: list[int | None], options: dict[str, Any], filter: Filter | None) -> None:
        """By an identifier: exactly the rows of which one version went and another came, if no two rows share it."""
        place = list(self.columns).index(ID)
        expected: list[tuple[int | None, Changed, Changed, Changed, Changed]] = []
        for before, after in pairwise(line):
            gone = self.at(before, filter) - self.at(after, filter)
            come = self.at(after, filter) - self.at(before, filter)
            left, right = (Counter(row[place] for row in side.elements()) for side in (gone, come))
            both = left.keys() & right.keys()
            if any(left[key] + right[key] > 2 for key in both):
                return
            changed = [Counter({r: n for r, n in side.items() if r[place] in both}) for side in (gone, come)]
            expected.append((after, gone - changed[0], come - changed[1], changed[0], changed[1]))
        found = self.changes(**options, identifier_columns=["id"])
        for after, *sides in expected:
            for kind, side in zip(("DELETE", "INSERT", "UPDATE_BEFORE", "UPDATE_AFTER"), sides, strict=True):
                assert Counter(row for k, _, i, row in found if (k, i) == (kind, after)) == side
            updates = [row[place] for k, _, i, row in found if i == after and k.startswith("UPDATE")]
            assert updates[::2] == updates[1::2]

    def check_inclusive(self, line: list[int | None], start: int, last: int | None) -> None:
        found = self.changes(from_snapshot_id=start, to_snapshot_id=last, from_inclusive=True)
        assert found == self.changes(from_snapshot_id=line[0], to_snapshot_id=last)

    def check_net(self, line: list[int | None], start: int | None) -> None:
        found = self.changes(from_snapshot_id=start, to_snapshot_id=line[-1], net_changes=True)
        gone = Counter(row for kind, _, _, row in found if kind == "DELETE")
        come = Counter(row for kind, _, _, row in found if kind == "INSERT")
        old, new = self.at(start), self.at(line[-1])
        assert not gone - old
        assert old - gone + come == new
        if self.version < 3:
            assert (gone, come) == (old - new, new - old)


TestChangelog = ChangelogMachine.TestCase
TestChangelog.settings = settings(max_examples=15, stateful_step_count=12)

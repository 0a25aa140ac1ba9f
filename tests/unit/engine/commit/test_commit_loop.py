from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.references import CreateRef
from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.commit_loop import stage_all
from icebench.engine.commit.committer import Conflicted, Outcome, TableState, Unknown
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.commit.staged_snapshot import Staged
from icebench.engine.commit.staging_context import Staging
from icebench.engine.runtime.counters import COMMIT_ATTEMPTS
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertRefSnapshotId, AssertTableUuid, TableRequirement
from icebench.engine.spec.snapshots import SnapshotRef
from icebench.engine.spec.updates import (
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    TableUpdate,
    UpgradeFormatVersion,
)
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import (
    CommitConflict,
    CommitStateUnknown,
    Invalid,
    NotFound,
    StorageFailed,
    ValidationFailed,
)
from tests.services.faulty_store import Fault, FaultyStore, Moment
from tests.unit.engine.commit.tables import World, data_file, lost, metadata, world

Requirements = Sequence[TableRequirement]
Updates = Sequence[TableUpdate]


def append(w: World, name: str) -> TableState:
    return w.transaction().commit([Append(data_files=[data_file(name)])])


class TestConflicts:
    def test_the_change_is_staged_again_on_the_new_base(self) -> None:
        w = world()
        w.committer.before = [lambda: append(w, "theirs")]
        append(w, "ours")
        assert w.files() == {"theirs": 1, "ours": 2}
        assert [s.snapshot_id for s in w.metadata.snapshots] == [102, 101]
        assert w.metadata.snapshots[1].parent_snapshot_id == 102
        assert w.metadata.snapshots[1].summary["total-records"] == "20"
        assert w.slept == [0.1]

    def test_manifests_are_written_once_and_stale_lists_removed(self) -> None:
        w = world()
        w.committer.before = [lambda: append(w, "theirs")]
        transaction = w.transaction()
        ours = w.last
        transaction.commit([Append(data_files=[data_file("ours")])])
        assert ours is not None
        assert ours.counters[COMMIT_ATTEMPTS] == 2
        written = [name.rpartition("/")[2] for name in ours.written]
        assert len([name for name in written if "-m" in name]) == 1
        assert len([name for name in written if name.startswith("snap-")]) == 2
        referenced = {(s.manifest_list or "").rpartition("/")[2] for s in w.metadata.snapshots}
        assert {name for name in w.stored() if name.startswith("snap-")} == referenced

    def test_giving_up_leaves_no_file(self) -> None:
        w = world(metadata(properties={"commit.retry.num-retries": "2"}))
        w.committer.answers = [lambda _: Conflicted("busy")] * 3
        w.committer.handle = lambda *_: Conflicted("busy")
        with pytest.raises(CommitConflict, match=r"db\.t: gave up after 3 attempts: busy"):
            append(w, "ours")
        assert w.stored() == set()
        assert w.slept == [0.1, 0.2]

    def test_no_retries(self) -> None:
        w = world(metadata(properties={"commit.retry.num-retries": "0"}))
        w.committer.before = [lambda: append(w, "theirs")]
        with pytest.raises(CommitConflict, match="after 1 attempts"):
            append(w, "ours")
        assert w.files() == {"theirs": 1}

    def test_a_conflict_that_our_own_first_request_caused_is_success(self) -> None:
        # The transport sent the request twice; the answer to the second came back.
        w = world()
        w.committer.answers = [lambda _: Conflicted("409: branch main has changed", is_certain=False)]
        append(w, "ours")
        assert w.files() == {"ours": 1}
        assert [s.snapshot_id for s in w.metadata.snapshots] == [101]

    def test_a_refusal_that_our_own_first_request_caused_is_success(self) -> None:
        w = world()
        error = Invalid("snapshot 101 exists already")
        w.committer.answers = [lambda _: Conflicted(str(error), is_certain=False, error=error)]
        append(w, "ours")
        assert w.files() == {"ours": 1}
        assert w.slept == []

    def test_a_refused_change_is_not_tried_again_and_leaves_no_file(self) -> None:
        w = world()
        append(w, "before")
        stored = w.stored()
        w.committer.handle = lambda *_: Conflicted("no", is_certain=False, error=Invalid("no"))
        with pytest.raises(Invalid, match="no"):
            append(w, "ours")
        with pytest.raises(Invalid, match="no"):
            w.transaction().commit([CreateRef(name="b", type="branch")])
        assert (w.stored(), w.slept) == (stored, [])

    def test_also_when_it_was_the_last_attempt(self) -> None:
        w = world(metadata(properties={"commit.retry.num-retries": "0"}))
        w.committer.answers = [lambda _: Conflicted("409", is_certain=False)]
        append(w, "ours")
        assert w.files() == {"ours": 1}

    def test_an_uncertain_conflict_of_somebody_elses_commit_is_one(self) -> None:
        w = world()
        w.committer.before = [lambda: append(w, "theirs")]
        w.committer.answers = [
            lambda outcome: outcome,
            lambda outcome: replace(outcome, is_certain=False) if isinstance(outcome, Conflicted) else outcome,
        ]
        append(w, "ours")
        assert w.files() == {"theirs": 1, "ours": 2}

    def test_an_uncertain_conflict_after_a_certain_one_may_be_our_success(self) -> None:
        w = world()
        w.committer.before = [lambda: append(w, "theirs")]
        w.committer.answers = [lambda o: o, lambda o: o, lambda _: Conflicted("409", is_certain=False)]
        append(w, "ours")
        assert w.files() == {"theirs": 1, "ours": 2}
        assert [s.snapshot_id for s in w.metadata.snapshots] == [102, 101]

    def test_an_attempt_that_arrives_late_keeps_its_files_and_the_others_go(self) -> None:
        w = world()
        held: list[tuple[Requirements, Updates]] = []

        def hold_the_first(requirements: Requirements, updates: Updates) -> Outcome:
            if held:
                return w.committer.apply(requirements, updates)
            held.append((requirements, updates))
            return Unknown(cause=StorageFailed("timeout"))

        w.committer.handle = hold_the_first
        w.committer.before = [lambda: None, lambda: w.committer.apply(*held[0])]
        append(w, "ours")
        assert w.files() == {"ours": 1}
        lists = {(s.manifest_list or "").rpartition("/")[2] for s in w.metadata.snapshots}
        assert {name for name in w.stored() if name.startswith("snap-")} == lists

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_a_write_that_fails_leaves_no_file(self, moment: Moment) -> None:
        for at in range(2):
            inner = MemoryStore()
            w = world(None, store=FaultyStore(inner, Fault(at, moment)))
            with pytest.raises(StorageFailed):
                append(w, "ours")
            assert list(inner.list("memory://wh")) == []

    def test_nor_is_it_guessed_when_the_catalog_cannot_be_asked(self) -> None:
        w = world()
        w.committer.answers = [lambda _: Conflicted("409", is_certain=False)]
        w.committer.loads = [None, *[StorageFailed("down")] * 4]
        with pytest.raises(CommitStateUnknown, match="409"):
            append(w, "ours")
        assert w.files() == {"ours": 1}

    def test_a_change_without_a_snapshot_may_have_been_made_by_the_first_request(self) -> None:
        w = world()
        append(w, "a")
        w.committer.answers = [lambda _: Conflicted("409", is_certain=False)]
        create = CreateRef(name="b", type="branch")
        with pytest.raises(CommitStateUnknown, match="409; and the table's history does not show"):
            w.transaction().commit([create])
        assert set(w.metadata.refs) == {"main", "b"}

    def test_an_upgrade_in_between_writes_the_manifests_again(self) -> None:
        w = world(metadata(1))
        w.committer.before = [
            lambda: w.committer.apply([], [UpgradeFormatVersion(2)]),
        ]
        w.committer.answers = [lambda _: Conflicted("table changed")]
        apply = w.committer.apply
        refused: list[int] = []

        def refuse_once(requirements: Requirements, updates: Updates) -> Outcome:
            if len(updates) > 1 and not refused:
                refused.append(1)
                return Conflicted("table changed")
            return apply(requirements, updates)

        w.committer.handle = refuse_once
        append(w, "ours")
        # A manifest of version 1 would have sequence number 0 for ever.
        assert w.files() == {"ours": 1}

    def test_a_dropped_table_is_not_found_and_leaves_nothing(self) -> None:
        w = world()
        w.committer.answers = [lambda _: Conflicted("gone")]
        w.committer.handle = lambda *_: Conflicted("gone")
        w.committer.loads = [None, NotFound("no table db.t")]
        with pytest.raises(NotFound):
            append(w, "ours")
        assert w.stored() == set()


class TestLostAnswers:
    def test_a_lost_success_is_found(self) -> None:
        w = world()
        w.committer.answers = [lost]
        append(w, "ours")
        assert w.files() == {"ours": 1}
        assert len(w.metadata.snapshots) == 1
        assert w.slept == []

    def test_also_behind_somebody_elses_commit(self) -> None:
        w = world()

        def then_theirs(outcome: Outcome) -> Outcome:
            append(w, "theirs")
            return lost(outcome)

        w.committer.answers = [then_theirs]
        state = append(w, "ours")
        assert w.files() == {"ours": 1, "theirs": 2}
        assert state == w.committer.state

    def test_a_lost_failure_is_tried_again(self) -> None:
        w = world()
        real = w.committer.apply
        calls: list[int] = []

        def never_arrives(requirements: Requirements, updates: Updates) -> Outcome:
            calls.append(1)
            if len(calls) == 1:
                return Unknown(cause=StorageFailed("refused"))
            return real(requirements, updates)

        w.committer.handle = never_arrives
        append(w, "ours")
        assert w.files() == {"ours": 1}
        assert w.slept == [0.1]

    def test_a_late_arrival_of_the_first_attempt_makes_one_snapshot(self) -> None:
        w = world()
        real = w.committer.apply
        held: list[tuple[Requirements, Updates]] = []

        def delayed(requirements: Requirements, updates: Updates) -> Outcome:
            if not held:
                held.append((requirements, updates))
                return Unknown(cause=StorageFailed("timeout"))
            # The first request reaches the catalog just before the second.
            real(*held[0])
            return real(requirements, updates)

        w.committer.handle = delayed
        append(w, "ours")
        assert w.files() == {"ours": 1}
        assert [s.snapshot_id for s in w.metadata.snapshots] == [101]
        # The winner's manifest list is the first attempt's, and is still there.
        assert (w.metadata.snapshots[0].manifest_list or "").rpartition("/")[2] in w.stored()

    def test_the_catalog_is_asked_again_until_it_answers(self) -> None:
        w = world()
        w.committer.answers = [lost]
        w.committer.loads = [None, StorageFailed("down"), StorageFailed("down"), None]
        append(w, "ours")
        assert w.files() == {"ours": 1}
        assert w.slept == [1.0, 2.0]

    def test_when_nobody_can_say_no_file_is_deleted(self) -> None:
        w = world()
        w.committer.answers = [lost]
        w.committer.loads = [None, *[StorageFailed("down")] * 4]
        with pytest.raises(CommitStateUnknown, match="connection reset") as raised:
            append(w, "ours")
        assert "\n" not in str(raised.value)
        assert "down" in str(raised.value)
        # It had happened after all, and the table is whole.
        assert w.files() == {"ours": 1}

    def test_giving_up_with_an_open_question_keeps_files(self) -> None:
        w = world(metadata(properties={"commit.retry.num-retries": "1"}))
        w.committer.handle = lambda *_: Unknown(cause=StorageFailed("timeout"))
        with pytest.raises(CommitStateUnknown):
            append(w, "ours")
        assert len(w.stored()) == 3

    def test_an_attempt_whose_base_is_current_may_arrive_yet(self) -> None:
        w = world(metadata(properties={"commit.retry.num-retries": "1"}))
        append(w, "former")
        answer = Unknown(cause=StorageFailed("timeout"), metadata_location="lost", base_location="v1")
        w.committer.handle = lambda *_: answer
        with pytest.raises(CommitStateUnknown):
            append(w, "ours")
        assert len(w.stored()) == 5

    def test_a_dead_attempt_is_no_open_question(self) -> None:
        # The compare-and-swap of the lost attempt compares with v0, where the table never comes back to.
        w = world(metadata(properties={"commit.retry.num-retries": "1"}))
        real = w.committer.apply

        def lose_then_refuse(requirements: Requirements, updates: Updates) -> Outcome:
            if w.committer.state.metadata_location == "v0":
                real([], [SetProperties({"by": "them"})])
                return Unknown(cause=StorageFailed("timeout"), metadata_location="lost", base_location="v0")
            return Conflicted("busy")

        w.committer.handle = lose_then_refuse
        with pytest.raises(CommitConflict, match="busy"):
            append(w, "ours")
        assert w.stored() == set()

    def test_a_change_without_snapshot_is_found_by_its_metadata_file(self) -> None:
        w = world()
        calls: list[int] = []
        real = w.committer.apply

        def lose(requirements: Requirements, updates: Updates) -> Outcome:
            calls.append(1)
            real(requirements, updates)
            real([], [SetProperties({"n": str(len(calls))})])
            return Unknown(cause=StorageFailed("timeout"), metadata_location="v1")

        w.committer.handle = lose
        w.transaction().commit([Properties({"owner": "ann"})])
        assert len(calls) == 1
        assert w.metadata.properties == {"owner": "ann", "n": "1"}


class TestLostAnswersAndExpiry:
    """The answer is lost, and the snapshot expires before the table is looked at."""

    def theirs(self, w: World, *changes: Change) -> None:
        """Somebody else commits these, and then expires all but the newest snapshot."""
        for change in changes:
            w.transaction().commit([change])
        gone = frozenset(s.snapshot_id for s in w.metadata.snapshots[:-1])
        w.committer.apply([], [RemoveSnapshots(gone)])

    def lose(self, w: World, *changes: Change, arrives: bool = True, named: bool = False) -> None:
        base = w.committer.state.metadata_location

        def answer(requirements: Requirements, updates: Updates) -> Outcome:
            w.committer.handle = None
            if arrives:
                w.committer.apply(requirements, updates)
            self.theirs(w, *changes)
            names: dict[str, Any] = {"metadata_location": "lost", "base_location": base} if named else {}
            return Unknown(cause=StorageFailed("connection reset"), **names)

        w.committer.handle = answer

    @pytest.mark.parametrize("version", [1, 2, 3])
    @pytest.mark.parametrize("rewritten", [False, True])
    def test_what_the_change_added_shows_that_it_happened(self, version: int, *, rewritten: bool) -> None:
        w = world(metadata(version))
        append(w, "former")
        self.lose(w, Append(data_files=[data_file("theirs")]), *([RewriteManifests()] if rewritten else []))
        change = Append(data_files=[data_file("ours")])
        state = w.transaction().commit([change])
        assert w.files().keys() == {"former", "ours", "theirs"}  # asserts that no file is there twice
        assert state == w.committer.state
        assert change.added_snapshot_id not in state.metadata.snapshot_by_id
        assert change.snapshot_in(state.metadata).summary["added-data-files"] == "1"

    def test_without_a_trace_the_outcome_is_unknown(self) -> None:
        w = world()
        append(w, "former")
        ours = data_file("ours")
        compaction = RewriteFiles(
            data_files=[data_file("compacted")],
            removed_data=[ref_to(ours)],
            validation=Validation(starting_snapshot_id=102, referenced=[ref_to(ours)], refuse_deletes="all"),
        )
        self.lose(w, compaction, Append(data_files=[data_file("more")]))
        with pytest.raises(CommitStateUnknown, match="connection reset; and the table's history does not show"):
            w.transaction().commit([Append(data_files=[ours])])
        assert w.files().keys() == {"former", "compacted", "more"}

    def test_nor_where_others_may_have_come_in_its_place(self) -> None:
        w = world()
        append(w, "former")
        theirs = [Append(data_files=[data_file(name)]) for name in ("theirs", "more")]
        self.lose(w, *theirs, arrives=False)
        with pytest.raises(CommitStateUnknown):
            append(w, "ours")
        assert w.files().keys() == {"former", "theirs", "more"}

    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.parametrize("theirs", [[], ["theirs"]])
    def test_a_line_without_a_gap_shows_that_it_did_not(self, version: int, theirs: list[str]) -> None:
        w = world(metadata(version))
        append(w, "former")
        append(w, "head")
        self.lose(w, *(Append(data_files=[data_file(name)]) for name in theirs), arrives=False)
        append(w, "ours")
        assert w.files().keys() == {"former", "head", "ours", *theirs}

    def test_what_followed_the_base_shows_it_too(self) -> None:
        w = world()
        append(w, "former")
        theirs = [Append(data_files=[data_file(name)]) for name in ("theirs", "more")]
        self.lose(w, *theirs, arrives=False, named=True)
        append(w, "ours")
        assert w.files().keys() == {"former", "theirs", "more", "ours"}

    def test_a_line_to_the_tables_first_snapshot_has_no_gap(self) -> None:
        w = world(metadata(1))
        append(w, "first")
        append(w, "second")

        def roll_back(requirements: Requirements, updates: Updates) -> Outcome:
            w.committer.handle = None
            w.committer.apply([], [SetSnapshotRef("main", SnapshotRef(snapshot_id=101, type="branch"))])
            w.committer.apply([], [RemoveSnapshots(frozenset({102}))])
            return Unknown(cause=StorageFailed("never arrived"))

        w.committer.handle = roll_back
        append(w, "ours")
        assert w.files().keys() == {"first", "ours"}

    def test_what_waits_to_be_published_may_be_made_again(self) -> None:
        w = world()
        append(w, "former")
        theirs = [Append(data_files=[data_file(name)]) for name in ("theirs", "more")]
        self.lose(w, *theirs, arrives=False)
        w.transaction().commit([Append(data_files=[data_file("ours")], is_visible=False)])
        assert len(w.metadata.snapshots) == 2

    def test_older_snapshots_have_only_older_ones_before_them(self) -> None:
        w = world()
        for name in ("a", "b", "c"):
            append(w, name)

        def roll_back(requirements: Requirements, updates: Updates) -> Outcome:
            w.committer.handle = None
            w.committer.apply([], [SetSnapshotRef("main", SnapshotRef(snapshot_id=102, type="branch"))])
            w.committer.apply([], [RemoveSnapshots(frozenset({101, 103}))])
            return Unknown(cause=StorageFailed("never arrived"))

        w.committer.handle = roll_back
        append(w, "ours")
        assert w.files().keys() == {"a", "b", "ours"}

    def test_a_conflict_that_may_be_our_own_is_looked_into_alike(self) -> None:
        w = world()
        append(w, "former")

        def copied(outcome: Outcome) -> Outcome:
            self.theirs(w, Append(data_files=[data_file("theirs")]))
            return Conflicted("409", is_certain=False)

        w.committer.answers = [copied]
        append(w, "ours")
        assert w.files().keys() == {"former", "ours", "theirs"}

    def test_a_metadata_log_that_was_cut_proves_nothing(self) -> None:
        w = world(metadata(properties={"write.metadata.previous-versions-max": "1", "commit.retry.num-retries": "0"}))

        def lose(requirements: Requirements, updates: Updates) -> Outcome:
            w.committer.apply(requirements, updates)
            for n in range(3):
                w.committer.apply([], [SetProperties({"n": str(n)})])
            return Unknown(cause=StorageFailed("timeout"), metadata_location="v1", base_location="v0")

        w.committer.handle = lose
        with pytest.raises(CommitStateUnknown, match="timeout; and the table's history does not show"):
            w.transaction().commit([Properties({"owner": "ann"})])


class Properties:
    """A change that adds no snapshot."""

    def __init__(self, updates: dict[str, str]) -> None:
        self.updates = updates

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        return Staged(requirements=(AssertTableUuid(base.table_uuid),), updates=(SetProperties(self.updates),))


class Requiring:
    """A change of nothing that assumes something."""

    def __init__(self, requirement: TableRequirement) -> None:
        self.requirement = requirement

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        return Staged(requirements=(self.requirement,))


class Wrong:
    """A change that never fits."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def stage(self, base: TableMetadata, staging: Staging) -> Staged:
        raise self.error


class TestSeveralChanges:
    def test_they_become_visible_together(self) -> None:
        w = world()
        w.transaction().commit(
            [Append(data_files=[data_file("a")]), Properties({"owner": "ann"}), Append(data_files=[data_file("b")])]
        )
        assert w.committer.versions == 1
        assert w.files() == {"a": 1, "b": 2}
        assert w.metadata.properties == {"owner": "ann"}
        first, second = w.metadata.snapshots
        assert second.parent_snapshot_id == first.snapshot_id
        # Only the last was ever current.
        assert [entry.snapshot_id for entry in w.metadata.snapshot_log] == [second.snapshot_id]

    def test_all_are_staged_again_after_a_conflict(self) -> None:
        w = world()
        w.committer.before = [lambda: append(w, "theirs")]
        w.transaction().commit([Append(data_files=[data_file("a")]), Append(data_files=[data_file("b")])])
        assert w.files() == {"theirs": 1, "a": 2, "b": 3}

    def test_requirements_are_those_of_the_base(self) -> None:
        w = world()
        staged = stage_all(
            [Append(data_files=[data_file("a")]), Append(data_files=[data_file("b")])], w.metadata, w.staging()
        )
        assert len(staged.requirements) == 2
        for requirement in staged.requirements:
            requirement.check(w.metadata)

    def test_a_requirement_that_no_earlier_change_speaks_of_stays(self) -> None:
        w = world(metadata(properties={"commit.retry.num-retries": "1"}))
        changes: list[Change] = [Append(data_files=[data_file("a")]), Requiring(AssertRefSnapshotId("b", 7))]
        assert AssertRefSnapshotId("b", 7) in stage_all(changes, w.metadata, w.staging()).requirements
        with pytest.raises(CommitConflict, match="'b' has changed: expected 7"):
            w.transaction().commit(changes)
        assert w.metadata.snapshots == ()

    @pytest.mark.parametrize("error", [Invalid("no"), ValidationFailed("no"), StorageFailed("no")])
    def test_one_that_fails_takes_the_others_files_along(self, error: Exception) -> None:
        w = world()
        with pytest.raises(type(error)):
            w.transaction().commit([Append(data_files=[data_file("a")]), Wrong(error)])
        assert w.committer.versions == 0
        assert w.stored() == set()
        assert w.slept == []

"""Streams that are restarted anywhere, beside commits, rollbacks, branches and expiries: a branch has each batch once.

The oracle reads the files of the branch, one for each batch, and believes nothing else. A batch may be refused as
unknown only where former metadata files are lost, and only beside rollbacks, expiries by other engines or branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.changes.references import CreateRef, FastForward, RemoveRef, Rollback, SetCurrentSnapshot
from icebench.engine.commit.changes.stream_batch import SetLastBatch, StreamBatch
from icebench.engine.commit.committed_batches import NO_BATCH
from icebench.engine.commit.committer import Committed, Outcome
from icebench.engine.commit.staged_snapshot import branch_head
from icebench.errors import AlreadyExists, FileNotFound, Invalid, NotFound, ValidationFailed
from tests.services.foreign_expiry import ForeignExpiry
from tests.unit.engine.commit.tables import World, data_file, live_files, metadata, world

STREAMS = ("s", "t")
BRANCHES = ("main", "audit")
KINDS = [
    *["run"] * 6,
    *["append"] * 3,
    *["our expiry", "foreign expiry", "rollback"] * 2,
    "branch",
    "fast-forward",
    "tag",
    "reset",
    "drop",
    "lose",
]
OWN_KINDS = [*["run"] * 5, *["append"] * 3, *["our expiry"] * 3, "lose"]
Step = tuple[str, str, str, int]


def steps_of(kinds: Sequence[str], branches: Sequence[str]) -> st.SearchStrategy[list[Step]]:
    step = st.tuples(st.sampled_from(kinds), st.sampled_from(STREAMS), st.sampled_from(branches), st.integers(0, 3))
    return st.lists(step, min_size=10, max_size=40)


STEPS = steps_of(KINDS, BRANCHES)
OWN_STEPS = steps_of(OWN_KINDS, ["main"])


@dataclass
class History:
    """A table, and what was sent to it."""

    world: World
    files: int = 0
    may_refuse: bool = True
    lost: bool = False

    def __post_init__(self) -> None:
        committer = self.world.committer
        committer.handle = self._applied
        committer.state = replace(committer.state, metadata_location="memory://wh/t/metadata/v0.metadata.json")

    def _applied(self, requirements: object, updates: object) -> Outcome:
        """Apply a commit and write its metadata file."""
        committer = self.world.committer
        location = f"memory://wh/t/metadata/v{committer.versions + 1}.metadata.json"
        outcome = committer.apply(requirements, updates, name=location)  # type: ignore[arg-type]
        if isinstance(outcome, Committed):
            self.world.store.write(location, encode_metadata(outcome.state.metadata))
        return outcome

    def commit(self, change: Change) -> None:
        self.world.transaction().commit([change])

    def new_name(self, text: str) -> str:
        self.files += 1
        return f"{text}.{self.files}"

    def present(self, stream: str, branch: str) -> set[int]:
        """The batches of a stream in a branch; none is there twice."""
        base = self.world.metadata
        own = branch if branch in base.refs else "main"
        names = [name.split(".") for name in live_files(base, self.world.store, own)]
        counts = Counter(int(number) for name, number, _ in names if name == stream)
        assert all(count == 1 for count in counts.values()), f"{stream} in {branch}: {counts}"
        return set(counts)

    def run(self, stream: str, branch: str, back: int) -> None:
        """The stream starts again, up to `back` batches before the last that the branch has, and sends a new one."""
        there = self.present(stream, branch)
        assert there == set(range(len(there)))
        last = max(there, default=-1)
        for number in range(max(0, last + 1 - back), last + 2):
            batch = StreamBatch(
                data_files=[data_file(self.new_name(f"{stream}.{number}"))],
                stream_id=stream,
                batch_id=number,
                branch=branch,
            )
            outcome = self.outcome(batch)
            if outcome == "refused":
                assert self.lost
                assert self.may_refuse, f"batch {number} of {stream} was refused, {branch} had up to {last}"
                self.commit(SetLastBatch(stream_id=stream, batch_id=last if last >= 0 else NO_BATCH, branch=branch))
                return
            expected = "skipped" if number <= last else "committed"
            assert outcome == expected, f"batch {number} of {stream}: {branch} had up to {last}"
        assert self.present(stream, branch) == set(range(last + 2))

    def outcome(self, batch: StreamBatch) -> str:
        try:
            self.commit(batch)
        except AlreadyExists:
            return "skipped"
        except ValidationFailed:
            return "refused"
        return "committed"

    def step(self, kind: str, stream: str, branch: str, number: int) -> None:
        base = self.world.metadata
        if kind == "run":
            self.run(stream, branch, number)
        elif kind == "lose":
            self.lost = True
            for entry in base.metadata_log:
                with suppress(FileNotFound):
                    self.world.store.delete(entry.metadata_file)
        else:
            with suppress(Invalid, AlreadyExists, NotFound):
                self.commit(self.change(kind, branch, number))

    def change(self, kind: str, branch: str, number: int) -> Change:
        base = self.world.metadata
        head = branch_head(base, branch)
        line = list(base.ancestors(None if head is None else head.snapshot_id))
        ids = [ref.snapshot_id for ref in base.refs.values()]
        if kind == "append":
            return Append(data_files=[data_file(self.new_name("x.0"))], branch=branch)
        if kind == "our expiry":
            return ExpireSnapshots(older_than_ms=2**50, retain_last=number + 1)
        if kind == "foreign expiry":
            return ForeignExpiry(older_than_ms=2**50, retain_last=number + 1)
        if kind == "rollback":
            return Rollback(line[number % len(line)] if line else 0, branch=branch)
        if kind == "branch":
            at = line[number % len(line)] if line else None
            return CreateRef(name="audit", type="branch", snapshot_id=at, overwrite=number == 0)
        if kind == "tag":
            at = line[number % len(line)] if line else None
            return CreateRef(name=f"tag{number}", type="tag", snapshot_id=at, overwrite=True)
        if kind == "fast-forward":
            return FastForward(branch, BRANCHES[branch == "main"])
        if kind == "reset":
            return SetCurrentSnapshot(ids[number % len(ids)] if ids else 0)
        return RemoveRef("audit" if number else f"tag{number + 1}")


@given(OWN_STEPS)
def test_after_our_own_expiries_no_batch_is_unknown(steps: list[Step]) -> None:
    history = History(world(metadata()), may_refuse=False)
    for step in steps:
        history.step(*step)
    for stream in STREAMS:
        history.run(stream, "main", 3)


@given(STEPS)
def test_each_batch_is_there_once(steps: list[Step]) -> None:
    history = History(world(metadata()))
    for step in steps:
        history.step(*step)
    for stream in STREAMS:
        for branch in BRANCHES:
            history.run(stream, branch, 3)

"""Commits through a network that loses, delays and doubles requests: nothing acknowledged is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.committer import Committed, Conflicted, Outcome, Unknown
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.spec.requirements import TableRequirement
from icebench.engine.spec.updates import RemoveSnapshots, SetProperties, TableUpdate
from icebench.errors import CommitConflict, CommitStateUnknown, StorageFailed
from tests.unit.engine.commit.tables import World, data_file, metadata, world

Requirements = Sequence[TableRequirement]
Updates = Sequence[TableUpdate]


class Event(Enum):
    """What becomes of one request."""

    FINE = "applied and answered"
    LOST_ANSWER = "applied, the answer is lost"
    LOST_REQUEST = "never arrives"
    DELAYED = "arrives after the client gave up waiting, before the next request"
    DOUBLED = "sent twice by the transport, the second answer comes back"
    THEIRS_FIRST = "somebody else's append comes first"
    THEIRS_AFTER = "applied, somebody else's append follows, the answer is lost"
    PROPERTY_FIRST = "somebody else's property change comes first"
    EXPIRED_AFTER = "applied, somebody else's append follows, all others expire, the answer is lost"
    EXPIRED_INSTEAD = "somebody else's two appends come instead, all others expire, the answer is lost"


@dataclass
class Network:
    """Between the client and the catalog; follows a script of events, then all is fine."""

    world: World
    events: list[Event]
    knows_base: bool
    delayed: list[Callable[[], Outcome]] = field(default_factory=list)
    theirs: int = 0
    expiries: int = 0
    requests: int = 0

    def handle(self, requirements: Requirements, updates: Updates) -> Outcome:
        for late in self.delayed:
            late()
        self.delayed.clear()
        event = self.events.pop(0) if self.events else Event.FINE
        committer = self.world.committer
        base = committer.state.metadata_location if self.knows_base else None
        self.requests += 1
        new = f"request-{self.requests}" if self.knows_base else None
        lost = Unknown(cause=StorageFailed(event.value), metadata_location=new, base_location=base)
        match event:
            case Event.LOST_REQUEST:
                return lost
            case Event.EXPIRED_INSTEAD:
                self.append_theirs()
                self.append_theirs()
                self.expire()
                return lost
            case Event.DELAYED:
                self.delayed.append(lambda: self.apply(base, new, requirements, updates))
                return lost
            case Event.THEIRS_FIRST:
                self.append_theirs()
            case Event.PROPERTY_FIRST:
                committer.apply([], [SetProperties({"n": str(self.theirs)})])
        outcome = self.apply(base, new, requirements, updates)
        if event is Event.DOUBLED:
            again = self.apply(base, new, requirements, updates)
            return replace(again, is_certain=False) if isinstance(again, Conflicted) else again
        if event in {Event.THEIRS_AFTER, Event.EXPIRED_AFTER}:
            self.append_theirs()
        if event is Event.EXPIRED_AFTER:
            self.expire()
        return lost if event in {Event.LOST_ANSWER, Event.THEIRS_AFTER, Event.EXPIRED_AFTER} else outcome

    def expire(self) -> None:
        """All snapshots but the last, with the files that only they need."""
        committer = self.world.committer
        before = referenced(self.world)
        gone = frozenset(snapshot.snapshot_id for snapshot in committer.state.metadata.snapshots[:-1])
        committer.apply([], [RemoveSnapshots(gone)])
        for location in before - referenced(self.world):
            self.world.store.delete(location)
        self.expiries += 1

    def apply(self, base: str | None, new: str | None, requirements: Requirements, updates: Updates) -> Outcome:
        """A catalog that knows the base refuses a request whose base has passed."""
        committer = self.world.committer
        if base not in {None, committer.state.metadata_location}:
            return Conflicted("another base")
        return committer.apply(requirements, updates, new)

    def append_theirs(self) -> None:
        committer = self.world.committer
        ours = committer.handle, committer.loads
        committer.handle, committer.loads = None, []
        self.world.transaction().commit([Append(data_files=[data_file(f"theirs-{self.theirs}")])])
        committer.handle, committer.loads = ours
        self.theirs += 1


def referenced(w: World) -> set[str]:
    found = set()
    for snapshot in w.metadata.snapshots:
        found.add(snapshot.manifest_list or "")
        found |= {manifest.manifest_path for manifest in load_manifests(snapshot, w.store)}
    return found


@pytest.mark.slow
@settings(max_examples=300)
@given(
    events=st.lists(st.sampled_from(Event), max_size=12),
    outages=st.lists(st.booleans(), max_size=10),
    knows_base=st.booleans(),
    retries=st.integers(0, 4),
)
def test_nothing_acknowledged_is_lost_or_doubled(
    events: list[Event], outages: list[bool], *, knows_base: bool, retries: int
) -> None:
    w = world(metadata(properties={"commit.retry.num-retries": str(retries), "commit.status-check.num-retries": "1"}))
    network = Network(w, list(events), knows_base)
    w.committer.handle = network.handle
    must_be_there, must_not, may_be_there = [], [], []
    for n in range(4):
        name = f"ours-{n}"
        w.committer.loads = [None, *(StorageFailed("down") if out else None for out in outages[n::4])]
        try:
            state = w.transaction().commit([Append(data_files=[data_file(name)])])
        except CommitStateUnknown:
            may_be_there.append(name)
        except (CommitConflict, StorageFailed):
            must_not.append(name)
        else:
            must_be_there.append(name)
            assert isinstance(Committed(state), Committed)
            assert state.metadata.snapshot_by_id.keys() <= w.metadata.snapshot_by_id.keys() or network.expiries
    w.committer.loads = []
    for late in network.delayed:
        late()
    files = w.files()  # asserts that no file is there twice
    assert set(must_be_there) <= files.keys()
    assert not set(must_not) & files.keys()
    theirs = {f"theirs-{n}" for n in range(network.theirs)}
    assert set(files) - set(must_be_there) - set(may_be_there) == theirs
    # What the table needs is stored, also where the client did not know how its commit ended.
    assert referenced(w) <= {info.location for info in w.store.list("memory://wh")}
    numbers = [snapshot.sequence_number for snapshot in w.metadata.snapshots]
    assert numbers == sorted(set(numbers))
    # Which attempt was carried out is not known of a snapshot that has expired: the files of all of them stay.
    if not may_be_there and not network.delayed and not network.expiries:
        stored = {info.location for info in w.store.list("memory://wh")}
        assert stored == referenced(w)

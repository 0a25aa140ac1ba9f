"""The checker: every version of every table, who made it, and whether that was right.

The versions of a table are in a sequence, whatever the actors do: each commit is checked at the moment it becomes
visible, as a step from the version before it. What the operation does to rows is computed again from the rows of the
snapshot that it was committed on: that is what serializable means. At the end the acknowledged operations are compared
with the versions that they made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from icebench.engine.commit.committer import Identifier
from icebench.engine.maintenance.expire_snapshots import ExpiredSnapshots
from icebench.engine.maintenance.remove_orphan_files import DEFAULT_AGE_MS
from icebench.errors import CommitStateUnknown, EngineError
from tests.simulation.catalogs import Place, Pointers, Rest
from tests.simulation.operations import KINDS, Base, Effect, P, Values, ends_of
from tests.simulation.process import ONE_THREAD, SimulatedTable, Step, plain
from tests.simulation.reading import Json, Reader, Row
from tests.simulation.schedule import Operation
from tests.simulation.statistics_files import KEYS, check_kept, check_new, check_none_gone, check_removed, paths_of
from tests.simulation.world import Actor, Violation, World

_OF_ROWS = frozenset((
    "snapshots", "refs", "current-snapshot-id", "snapshot-log", "metadata-log", "last-updated-ms",
    "last-sequence-number", "next-row-id",
))  # fmt: skip
"""Keys of metadata that snapshots and references change."""


@dataclass(eq=False)
class Record:
    """An operation, and what came of it.

    Args:
        actor: Whose.
        operation: What.
        steps: Its changes of rows, one but for transactions.
        outcome: ``running``, then ``ok``, ``failed``, ``unknown`` or ``died``.
        began: How many versions there were when it began.
        versions: Those that it made.
        statistics: The statistics files that the last of them no longer has.
        names: How often it made, renamed or dropped a table.
        named: How many changes of names there had been when it began.
    """

    actor: int
    number: int
    operation: Operation
    began: int
    steps: list[Step] = field(default_factory=list)
    outcome: str = "running"
    error: EngineError | None = None
    versions: list[int] = field(default_factory=list)
    statistics: set[str] = field(default_factory=set)
    names: int = 0
    named: int = 0

    def __str__(self) -> str:
        return f"actor {self.actor}, operation {self.number}: {self.operation}"


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a table."""

    location: str
    metadata: Json


class Checker:
    """Watches a world.

    Args:
        world: Files and actors.
        place: Where tables' current metadata files are named.
    """

    def __init__(self, world: World, place: Place) -> None:
        self.world = world
        self.place = place
        self.reader = Reader(world.files)
        self.records: list[Record] = []
        self.versions: dict[str, list[Version]] = {}
        self.beyond_promise = False
        self._needed: dict[str, frozenset[str]] = {}
        self._orphaned: set[str] = set()
        self._late: set[str] = set()
        self._pointers: Pointers = {}
        self._names: list[frozenset[Identifier]] = []
        self._take(place.pointers)

    # What happens.

    def begin(self, actor: Actor, operation: Operation) -> Record:
        """An actor calls an operation."""
        count = sum(map(len, self.versions.values()))
        record = Record(actor.index, actor.operation, operation, count, named=len(self._names))
        self.records.append(record)
        self.world.note("begins", str(operation))
        return record

    def end(self, record: Record, error: EngineError | None, *, died: bool = False) -> None:
        """It has ended."""
        record.error = error
        record.outcome = (
            "died" if died
            else "ok" if error is None
            else "unknown" if isinstance(error, CommitStateUnknown)
            else "failed"
        )  # fmt: skip
        if not died:
            self.world.note(
                "ends", f"{record.operation.kind}: {record.outcome}{'' if error is None else f' ({error})'}"
            )
        if record.outcome == "ok" and not record.versions:
            self._checked(lambda: self._check_nothing_done(record))
        if record.outcome == "ok" and group_of(record.operation) == "forget":
            self._checked(lambda: self._check_statistics_removed(record))

    @property
    def _is_rest(self) -> bool:
        return isinstance(self.place, Rest)

    def _since(self, record: Record) -> list[Version]:
        """The versions that there were while an operation ran."""
        return [v for each in self.versions.values() for v in each][max(record.began - 1, 0) :]

    def moved(self) -> None:
        """The catalog names other metadata files."""
        self._checked(lambda: self._take(self.place.pointers))

    def deleted(self, location: str) -> None:
        """A file is gone."""
        running = self._running()
        if any(location in needed for needed in self._needed.values()):
            if location in self._late and running is not None and running.operation.kind == "remove_orphans":
                self.beyond_promise = True
            self.world.fail("deleted a needed file", f"{location}, by {running}")
        if running is not None and running.operation.kind == "remove_orphans":
            self._orphaned.add(location)

    def _checked(self, check: Callable[[], object]) -> None:
        try:
            check()
        except Violation as violation:
            self.world.fail(violation.kind, str(violation).partition(": ")[2])

    def _running(self) -> Record | None:
        actor = self.world.current
        if self.world.author is not None:
            whose, number, _ = self.world.author
            return next(r for r in reversed(self.records) if (r.actor, r.number) == (whose, number))
        if actor is None:
            return None
        return next((r for r in reversed(self.records) if r.actor == actor.index), None)

    def _take(self, pointers: Pointers) -> None:
        for identifier, location in pointers.items():
            if self._pointers.get(identifier) == location:
                continue
            metadata = self.reader.metadata(location)
            uuid = metadata["table-uuid"]
            versions = self.versions.setdefault(uuid, [])
            if not versions:
                versions.append(Version(location, metadata))
                self._note_needed(uuid)
            elif versions[-1].location != location:
                self._take_version(uuid, Version(location, metadata))
        record = self._running()
        if pointers.keys() != self._pointers.keys():
            self._names.append(frozenset(pointers))
        if record is not None and pointers.keys() != self._pointers.keys():
            _expect(group_of(record.operation) == "name", "wrong names", f"{record} left {sorted(pointers)}")
            record.names += 1
        self._pointers = dict(pointers)
        living = {self.versions_uuid(location) for location in pointers.values()}
        for uuid in list(self._needed):
            if uuid not in living:
                del self._needed[uuid]

    def versions_uuid(self, location: str) -> str:
        """The table whose current metadata file that is."""
        return next(uuid for uuid, versions in self.versions.items() if versions[-1].location == location)

    def _note_needed(self, uuid: str) -> None:
        version = self.versions[uuid][-1]
        metadata = version.metadata
        needed = {version.location}.union(*(self.reader.reach(s) for s in metadata.get("snapshots", ())))
        needed.update(paths_of(metadata))
        self._needed[uuid] = frozenset(needed)

    def _take_version(self, uuid: str, version: Version) -> None:
        versions = self.versions[uuid]
        before = versions[-1].metadata
        versions.append(version)
        record = self._running()
        self.world.note("commits", f"version {len(versions)}")
        if any(v.location == version.location for v in versions[:-1]):
            raise Violation("went back", f"{version.location} is current again")
        if record is None:
            return  # preparing
        record.versions.append(len(versions) - 1)
        record.statistics = paths_of(before) - paths_of(version.metadata)
        if self._is_rest:  # what came during the call is not known to it
            record.statistics.intersection_update(*(paths_of(v.metadata) for v in self._since(record)[:-1]))
        known = self._needed[uuid]
        try:
            self._note_needed(uuid)
            for at in (self._needed[uuid] - known) & self.world.files.keys():
                if self.world.now_ms - self.world.files[at][1] > DEFAULT_AGE_MS:
                    self._late.add(at)
            self._check(before, version.metadata, record)
            lost = sorted(at for at in self._needed[uuid] if at not in self.world.files)
        except Violation as violation:
            lost = [str(violation).partition(": ")[2]] if violation.kind == "missing file" else []
            if not lost:
                raise
        if lost:
            if any(at in self._orphaned for at in lost):
                self.beyond_promise = True
                raise Violation(
                    "beyond what is promised", f"{lost[0]} was removed: {record} took longer than the age limit"
                )
            raise Violation("missing file", f"{record} committed a snapshot that needs {lost[0]}")

    # One step of a table.

    def _check(self, before: Json, after: Json, record: Record) -> None:
        old = {s["snapshot-id"]: s for s in before.get("snapshots", ())}
        now = {s["snapshot-id"]: s for s in after.get("snapshots", ())}
        new = [s for i, s in now.items() if i not in old]
        group = group_of(record.operation)
        for i in old.keys() & now.keys():
            _expect(_same(old[i], now[i]), "changed snapshot", f"{record} changed snapshot {i}: {old[i]} to {now[i]}")
        gone = old.keys() - now.keys()
        expired = _expired(before, record) if group == "forget" else set()
        if group == "forget" and gone != expired and self._is_rest:
            # REST has no requirement that no reference was added: what came during the call is not kept.
            earlier = (_expired(version.metadata, record) for version in self._since(record))
            expired = next((each for each in earlier if each == gone), expired)
        _expect(gone == expired, "wrong expiry", f"{record} removed snapshots {sorted(gone)} and not {sorted(expired)}")
        for name, ref in after.get("refs", {}).items():
            _expect(ref["snapshot-id"] in now, "reference to nothing", f"{name}, after {record}")
        if group not in {"shape", "many"}:
            one, other = before, after
            if group == "forget" or record.operation.kind == "append_batch":
                one, other = _without_batches(before), _without_batches(after)
            changed = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
            may = _OF_ROWS | (frozenset(KEYS) if group in {"forget", "statistics"} else frozenset())
            _expect(changed <= may, "changed more", f"{record} changed {sorted(changed - may)}")
        check_kept(before, after, may_set=group == "statistics", who=record)
        check_new(before, after, self.reader, record, may_be_gone=self._is_rest)
        self._check_numbers(before, after, new, record)
        line = self._check_snapshots(before, after, new, record)
        refs = _references(before)
        wanted = self._wanted_references(refs, before, line, record)
        found = _references(after)
        if wanted is not None and found != wanted and record.operation.kind in ("tag", "branch") and self._is_rest:
            # REST has no requirement that main stays where it was: the head of some moment during the call is right.
            name = record.operation.args["name"]
            heads = [_references(version.metadata).get("main") for version in self._since(record)]
            wanted = {**wanted, **({name: found[name]} if found.get(name) in heads else {})}
        _expect(wanted is None or found == wanted, "wrong references", f"{record} left {found} and not {wanted}")

    def _check_numbers(self, before: Json, after: Json, new: Sequence[Json], record: Record) -> None:
        last = before.get("last-sequence-number", 0)
        if before["format-version"] > 1:
            numbers = [s["sequence-number"] for s in new]
            wanted = list(range(last + 1, last + 1 + len(new)))
            _expect(numbers == wanted, "sequence numbers", f"{record} gave {numbers} after {last}")
            _expect(after["last-sequence-number"] == last + len(new), "sequence numbers", f"{record}: the table's own")
        next_id = before.get("next-row-id", 0)
        if after["format-version"] >= 3:
            for s in new:
                if "first-row-id" in s:
                    _expect(
                        s["first-row-id"] == next_id, "row ids", f"{record} began at {s['first-row-id']}, not {next_id}"
                    )
                    next_id += s["added-rows"]
            _expect(after["next-row-id"] == next_id, "row ids", f"{record} left {after['next-row-id']}, not {next_id}")

    def _check_snapshots(self, before: Json, after: Json, new: Sequence[Json], record: Record) -> list[Json]:
        """Check new snapshots; returns those that are not staged."""
        by_id = {s["snapshot-id"]: s for s in (*before.get("snapshots", ()), *new)}
        heads = _references(before)
        made = {s["summary"].get("simulation"): s for s in new}
        group = group_of(record.operation)
        if group in ("stored", "pick"):
            for s in new:
                parent = by_id.get(heads["main"])
                _expect(s.get("parent-snapshot-id") == heads["main"], "wrong parent", f"{record}")
                effect = self._other_effect(parent, s, by_id, record)
                self._check_rows(s, effect, record, before=before, after=after)
                heads["main"] = s["snapshot-id"]
            return list(new)
        rest = list(new)
        for step in record.steps:
            kind = KINDS[step.operation.kind]
            if kind.effect is None:
                continue
            branch = step.operation.args.get("branch", "main")
            parent_id = heads.get(branch, heads.get("main"))
            parent = by_id.get(parent_id) if parent_id is not None else None
            snapshot = made.get(step.tag)
            if snapshot is None and step.operation.kind == "keyed":
                snapshot = next((s for s in rest if "simulation" not in s["summary"]), None)
            if snapshot is not None and step.operation.kind == "stage":
                parent_id = snapshot.get("parent-snapshot-id")  # it waits beside the branch, which may move on
                parent = by_id.get(parent_id)
            rows = () if parent is None else self.reader.rows(parent)
            if snapshot is None:
                if step.did is False and step.operation.kind != "append_batch":
                    effect = kind.effect(rows, step, _base(after, frozenset()))
                    _expect(
                        effect.is_nothing(rows),
                        "not serializable",
                        f"{record}: {step.operation} did nothing, and now would",
                    )
                continue
            rest.remove(snapshot)
            _expect(
                snapshot.get("parent-snapshot-id") == parent_id,
                "wrong parent",
                f"{record}: {snapshot.get('parent-snapshot-id')}, not {parent_id}",
            )
            added = {row.partition for row in self.reader.rows(snapshot) if row.values in step.given}
            effect = kind.effect(rows, step, _base(after, frozenset(added)))
            self._check_rows(snapshot, effect, record, before=before, after=after)
            if step.operation.kind != "stage":
                heads[branch] = snapshot["snapshot-id"]
        _expect(not rest, "unknown snapshot", f"{record} made {[s['snapshot-id'] for s in rest]}")
        return [s for s in new if s["summary"].get("wap.id") is None]

    def _other_effect(self, parent: Json | None, new: Json, by_id: dict[int, Json], record: Record) -> Effect:
        rows = () if parent is None else self.reader.rows(parent)
        if group_of(record.operation) == "stored":
            return Effect(list(rows), [], [], [])
        picked = by_id[int(new["summary"]["source-snapshot-id"])]
        under = by_id.get(picked.get("parent-snapshot-id"))
        known = Counter() if under is None else Counter(row.values for row in self.reader.rows(under))
        brought = Counter(row.values for row in self.reader.rows(picked)) - known
        return Effect(list(rows), [], list(brought.elements()), [])

    def _check_rows(self, new: Json, effect: Effect, record: Record, *, before: Json, after: Json) -> None:
        fields = {
            f["id"]
            for schema in after["schemas"]
            if schema["schema-id"] == after["current-schema-id"]
            for f in schema["fields"]
        }
        rows = self.reader.rows(new)
        found = Counter(_projected(row.values, fields) for row in rows)
        wanted = Counter(
            _projected(values, fields)
            for values in (*(r.values for r in effect.kept), *(v for _, v in effect.changed), *effect.new)
        )
        if found != wanted:
            raise Violation(
                "wrong rows",
                f"{record} made snapshot {new['snapshot-id']}, in which are missing {_shown(wanted - found)}, "
                f"and too many {_shown(found - wanted)}",
            )
        if after["format-version"] >= 3:
            self._check_row_ids(rows, new, effect, before, record)

    def _check_row_ids(self, rows: Sequence[Row], new: Json, effect: Effect, before: Json, record: Record) -> None:
        ids = [row.row_id for row in rows]
        _expect(None not in ids and len(set(ids)) == len(ids), "row ids", f"{record}: ids {sorted(map(str, ids))}")
        if any(row.row_id is None for row in effect.kept) or any(row.row_id is None for row, _ in effect.changed):
            return  # before the upgrade rows had none
        at = {row.row_id: row for row in rows}
        # What a transaction itself has added or changed is numbered by its last step that writes it.
        next_id, last = before.get("next-row-id", 0), before["last-sequence-number"]
        for row, values, updated in (
            *((row, row.values, row.updated) for row in effect.kept),
            *((row, values, new["sequence-number"]) for row, values in effect.changed),
        ):
            assert row.row_id is not None
            if row.row_id >= next_id:
                continue
            same = at.get(row.row_id)
            _expect(
                same is not None
                and (same.updated == updated or (updated or 0) > last)
                and _compatible(same.values, values),
                "row ids",
                f"{record}: row {row} became {same}",
            )
        known = (
            {r.row_id for r in effect.kept}
            | {r.row_id for r, _ in effect.changed}
            | {r.row_id for r in effect.replaced}
        )
        for row in rows:
            assert row.row_id is not None
            _expect(
                row.row_id in known or row.row_id >= new["first-row-id"],
                "row ids",
                f"{record}: the new row {row} has an id from before",
            )

    def _wanted_references(
        self, refs: dict[str, int], before: Json, line: Sequence[Json], record: Record
    ) -> dict[str, int] | None:
        """The references as they have to be; None where the operation says too little."""
        group = group_of(record.operation)
        args = record.operation.args
        kind = record.operation.kind
        if group == "many":
            return None
        if group in ("rows", "stored"):
            return {**refs, **({args.get("branch", "main"): line[-1]["snapshot-id"]} if line else {})}
        if group == "pick":
            picked = next(
                (s["snapshot-id"] for s in before["snapshots"] if s["summary"].get("wap.id") == args["wap"]), None
            )
            return {**refs, "main": line[-1]["snapshot-id"] if line else picked}  # type: ignore[dict-item]
        if group == "forget":
            now = {s["snapshot-id"] for s in self._since(record)[-1].metadata.get("snapshots", ())}
            return {name: at for name, at in refs.items() if at in now}
        if group != "refs":
            return refs
        chosen = record.steps[0].chosen
        if kind in ("tag", "branch"):
            return {**refs, args["name"]: refs["main"] if chosen is None else chosen}
        if kind == "remove_ref":
            return {name: at for name, at in refs.items() if name != args["name"]}
        if kind == "fast_forward":
            return {**refs, args["branch"]: refs[args["to"]]}
        return {**refs, "main": chosen}  # type: ignore[dict-item]

    # Acknowledgements.

    def _check_statistics_removed(self, record: Record) -> None:
        """An expiry that deleted files deleted the statistics of what it expired."""
        result = record.steps[0].result
        assert isinstance(result, ExpiredSnapshots)
        if result.error is None:
            check_removed(record.statistics - set(result.not_deleted), self.world.files, record)

    def _check_nothing_done(self, record: Record) -> None:
        """An operation that said it did nothing: at some moment while it ran there was nothing to do."""
        kind = record.operation.kind
        step = record.steps[0] if record.steps else None
        effect = KINDS[kind].effect if kind in KINDS else None
        if step is None or effect is None or kind == "append_batch":
            return
        _expect(step.did is False, "lost commit", f"{record} was acknowledged, and made no version")
        for version in self._since(record):
            metadata = version.metadata
            refs = _references(metadata)
            head = refs.get(record.operation.args.get("branch", "main"), refs.get("main"))
            snapshot = next((s for s in metadata.get("snapshots", ()) if s["snapshot-id"] == head), None)
            rows = () if snapshot is None else self.reader.rows(snapshot)
            if effect(rows, step, _base(metadata, frozenset())).is_nothing(rows):
                return
        raise Violation("not serializable", f"{record} did nothing, though there was something to do all the time")

    def finish(self) -> None:
        """The end: what was acknowledged is there, and what failed is not."""
        if all(
            record.outcome in {"ok", "failed"} for record in self.records if group_of(record.operation) == "statistics"
        ):
            for made in self.versions.values():
                check_none_gone(made[-1].metadata, "at the end")
        for record in self.records:
            group, count = group_of(record.operation), len(record.versions)
            if group == "name":
                count = record.names
                done = count == 1 or (count == 0 and self._was_done_by_another(record))
                _expect(record.outcome != "ok" or done, "lost commit", f"{record} was acknowledged and not done")
            at_most = {"stored": 20, "statistics": 4}.get(group, 1)
            if record.outcome == "failed" and group not in {"stored", "statistics"}:
                at_most = 0
            _expect(
                count <= at_most,
                "committed though it failed" if at_most == 0 else "committed twice",
                f"{record}: {record.outcome} ({record.error}), and made {count} versions",
            )

    def _was_done_by_another(self, record: Record) -> bool:
        """Whether tables had the names that a rename or drop is for at some moment while it ran: where its answer is
        lost, nothing shows whose change that was."""
        old, new = ends_of(record.operation)
        return record.operation.kind != "create" and any(
            old not in names and (new is None or new in names) for names in self._names[record.named :]
        )

    def check_files(self, identifier: Identifier) -> None:
        """After orphan removal: beside a table lie its own files and no others."""
        metadata = self.reader.metadata(self.place.pointers[identifier])
        uuid = metadata["table-uuid"]
        self._note_needed(uuid)
        known = self._needed[uuid] | {entry["metadata-file"] for entry in metadata.get("metadata-log", ())}
        location = metadata["location"]
        own = [at for at in self.world.files if at.startswith((f"{location}/data/", f"{location}/metadata/"))]
        left = sorted(at for at in own if at not in known and "version-hint" not in at)
        _expect(not left, "orphans survive", f"{left[:3]}")
        lost = sorted(at for at in self._needed[uuid] if at not in self.world.files)
        _expect(not lost, "missing file", f"{lost[:3]}")

    def check_reads(self, table: SimulatedTable) -> None:
        """The engine reads of every snapshot what its files say."""
        metadata = self.reader.metadata(table.metadata_location)
        for snapshot in metadata.get("snapshots", ()):
            schema = next(s for s in metadata["schemas"] if s["schema-id"] == snapshot["schema-id"])
            names = {f["name"]: f["id"] for f in schema["fields"]}
            read = table.scan(snapshot_id=snapshot["snapshot-id"], runner=ONE_THREAD).to_arrow().to_pylist()
            found = Counter(
                frozenset((names[name], plain(value)) for name, value in row.items() if value is not None)
                for row in read
            )
            wanted = Counter(_projected(row.values, names.values()) for row in self.reader.rows(snapshot))
            _expect(
                found == wanted,
                "wrong read",
                f"snapshot {snapshot['snapshot-id']}: {_shown(found)}, not {_shown(wanted)}",
            )


def group_of(operation: Operation) -> str:
    """The group of its kind."""
    return "many" if operation.steps else KINDS[operation.kind].group


def _without_batches(metadata: Json) -> Json:
    """Metadata without the entries of numbered batches."""
    kept = {k: v for k, v in metadata.get("properties", {}).items() if not k.startswith("icebench.stream-batch.")}
    return {**metadata, "properties": kept}


def _same(old: Json, new: Json) -> bool:
    """Equal, but for the number 0 that snapshots of version 1 get at an upgrade."""
    return {"sequence-number": 0, **old} == {"sequence-number": 0, **new}


def _expect(condition: bool, kind: str, detail: str) -> None:
    if not condition:
        raise Violation(kind, detail)


def _references(metadata: Json) -> dict[str, int]:
    refs = {name: ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items()}
    current = metadata.get("current-snapshot-id", -1)
    if current is not None and current != -1:
        refs.setdefault("main", current)
    return refs


def _base(metadata: Json, partitions: frozenset[tuple[object, ...]]) -> Base:
    """What an effect may depend on, with the spec that new files were written for."""
    spec_id = next((partition[0] for partition in partitions), metadata["default-spec-id"])
    spec = next(s for s in metadata["partition-specs"] if s["spec-id"] == spec_id)
    return Base(all(f["transform"] == "void" for f in spec["fields"]), partitions)


def _projected(values: Values, fields: Iterable[int]) -> Values:
    return frozenset((i, value) for i, value in values if i in fields)


def _compatible(a: Values, b: Values) -> bool:
    """Equal in the columns of the table as it was made, which are never dropped."""
    return {i: v for i, v in a if i <= P} == {i: v for i, v in b if i <= P}


def _shown(rows: Counter[Values]) -> str:
    return str([dict(sorted(values)) for values in rows.elements()])


def _expired(metadata: Json, record: Record) -> set[int]:
    """The snapshots that an expiry has to remove from a table."""
    by_id = {s["snapshot-id"]: s for s in metadata.get("snapshots", ())}
    cut, retain = record.steps[0].chosen, record.operation.args["retain"]
    assert cut is not None
    kept: set[int] = set()
    reached: set[int] = set()
    for ref in metadata.get("refs", {}).values():
        at: int | None = ref["snapshot-id"]
        count = 0
        young = True
        while at is not None and at in by_id:
            young = young and by_id[at]["timestamp-ms"] >= cut
            count += 1
            if count <= (1 if ref["type"] == "tag" else retain) or (young and ref["type"] == "branch"):
                kept.add(at)
            reached.add(at)
            if ref["type"] == "tag":
                break
            at = by_id[at].get("parent-snapshot-id")
    kept |= {i for i, s in by_id.items() if i not in reached and s["timestamp-ms"] >= cut}
    return by_id.keys() - kept

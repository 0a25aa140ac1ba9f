"""A table in memory with a committer whose answers a test can lose, and data files that only manifests know."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from icebench.engine.codec.manifests.reader import decode_entries
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.commit.commit_loop import Transaction
from icebench.engine.commit.committer import Committed, Conflicted, Identifier, Outcome, TableState, Unknown
from icebench.engine.commit.manifests import load_manifests
from icebench.engine.commit.retry import Waiting
from icebench.engine.commit.staging_context import Staging
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.spec.manifest import EntryStatus
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.partitioning import UNPARTITIONED, PartitionSpec, partition_spec
from icebench.engine.spec.requirements import TableRequirement, check_requirements
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.snapshots import MAIN
from icebench.engine.spec.transforms import Identity
from icebench.engine.spec.types import LONG, STRING, NestedField
from icebench.engine.spec.updates import TableUpdate, apply_updates
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.storage.store import Store
from icebench.errors import CommitConflict, StorageFailed

NAME = ("db", "t")
SCHEMA = Schema(
    (NestedField(field_id=1, name="id", type=LONG, required=True), NestedField(field_id=2, name="day", type=STRING))
)
BY_DAY = partition_spec(SCHEMA, [("day", Identity())])


def metadata(
    format_version: int = 2, spec: PartitionSpec = UNPARTITIONED, properties: dict[str, str] | None = None
) -> TableMetadata:
    return new_table_metadata(
        SCHEMA,
        spec,
        location="memory://wh/t",
        uuid=uuid.UUID(int=1),
        now_ms=1_000,
        format_version=format_version,
        properties=properties,
    )


def data_file(name: str, *, day: str | None = None, rows: int = 10) -> DataFile:
    return DataFile(
        file_path=f"memory://wh/t/data/{name}.parquet",
        file_format="parquet",
        partition=() if day is None else (day,),
        record_count=rows,
        file_size_in_bytes=100,
    )


def deletes_of(*files: DataFile, name: str = "deletes", rows: int = 1) -> DataFile:
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=f"memory://wh/t/data/{name}.parquet",
        file_format="parquet",
        partition=files[0].partition,
        record_count=rows,
        file_size_in_bytes=50,
        referenced_data_file=files[0].file_path if len(files) == 1 else None,
    )


Answer = Callable[[Outcome], Outcome]
Handle = Callable[[Sequence[TableRequirement], Sequence[TableUpdate]], Outcome]


@dataclass
class MemoryCommitter:
    """Applies commits to a state in memory, where their requirements hold, as a REST server does.

    One that `compares` also wants their base to be the current state, as SQL and directory catalogs do.

    `before` runs before a commit is looked at (other writers); `handle` may take the place of `apply`; `answers` may
    replace the answer after it was applied; `loads` may raise instead of loading.
    """

    state: TableState
    before: list[Callable[[], object]] = field(default_factory=list)
    handle: Handle | None = None
    answers: list[Answer] = field(default_factory=list)
    loads: list[Exception | None] = field(default_factory=list)
    versions: int = 0
    compares: bool = False

    def load_state(self, identifier: Identifier) -> TableState:
        error = self.loads.pop(0) if self.loads else None
        if error is not None:
            raise error
        return self.state

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> Outcome:
        if self.before:
            self.before.pop(0)()
        if self.compares and base.metadata_location != self.state.metadata_location:
            return Conflicted("changed by another commit")
        outcome = (self.handle or self.apply)(requirements, updates)
        return self.answers.pop(0)(outcome) if self.answers else outcome

    def apply(
        self, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate], name: str | None = None
    ) -> Outcome:
        """Make the change; `name` is that of the metadata file."""
        try:
            check_requirements(self.state.metadata, requirements)
            changed = apply_updates(
                self.state.metadata, updates, now_ms=2_000, base_location=self.state.metadata_location
            )
        except CommitConflict as conflict:
            return Conflicted(str(conflict))
        self.versions += 1
        self.state = TableState(metadata=changed, metadata_location=name or f"v{self.versions}")
        return Committed(self.state)


def lost(outcome: Outcome) -> Outcome:
    """The answer does not arrive, whatever it was."""
    return Unknown(cause=StorageFailed("connection reset"))


@dataclass
class World:
    """A table, its storage, and transactions on it; ids and times repeat from run to run."""

    committer: MemoryCommitter
    store: Store = field(default_factory=MemoryStore)
    slept: list[float] = field(default_factory=list)
    now_ms: int = 1_500
    snapshot_ids: count[int] = field(default_factory=lambda: count(101))
    commit_ids: count[int] = field(default_factory=lambda: count(1))
    last: Staging | None = None

    def staging(self) -> Staging:
        self.last = Staging(
            store=self.store,
            commit_id=uuid.UUID(int=next(self.commit_ids)),
            now_ms=lambda: self.now_ms,
            new_snapshot_id=lambda: next(self.snapshot_ids),
            runner=LocalRunner(1),
        )
        return self.last

    def transaction(self) -> Transaction:
        waiting = Waiting(sleep=self.slept.append, monotonic=lambda: 0.0, random=lambda: 0.0)
        return Transaction(self.committer, NAME, self.staging(), waiting)

    @property
    def metadata(self) -> TableMetadata:
        return self.committer.state.metadata

    def store_metadata(self) -> None:
        """From now on every commit writes its metadata file, as a REST server does."""

        def apply(requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]) -> Outcome:
            location = f"memory://wh/t/metadata/{self.committer.versions + 1}.json"
            outcome = self.committer.apply(requirements, updates, location)
            self.store.write(location, encode_metadata(self.metadata))
            return outcome

        self.committer.handle = apply

    def files(self, branch: str = MAIN) -> dict[str, int]:
        """Live files of a branch by name, with their data sequence numbers."""
        return live_files(self.metadata, self.store, branch)

    def stored(self) -> set[str]:
        """Names of the files in storage."""
        return {info.location.rpartition("/")[2] for info in self.store.list("memory://wh")}


def world(base: TableMetadata | None = None, **options: object) -> World:
    state = TableState(metadata=base or metadata(), metadata_location="v0")
    return World(MemoryCommitter(state), **options)  # type: ignore[arg-type]


def live_files(table: TableMetadata, store: Store, branch: str = MAIN) -> dict[str, int]:
    found: dict[str, int] = {}
    for manifest in load_manifests(table.head(branch), store):
        for entry in decode_entries(store.read(manifest.manifest_path), location=manifest.manifest_path):
            if entry.status is not EntryStatus.DELETED:
                name = entry.data_file.file_path.rpartition("/")[2].removesuffix(".parquet")
                assert name not in found, f"{name} is twice in the table"
                number = manifest.sequence_number if entry.sequence_number is None else entry.sequence_number
                found[name] = number
    return found

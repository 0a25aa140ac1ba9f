"""All contradictions between a table's metadata and its files."""

from __future__ import annotations

from engine.errors import Contradiction
from engine.maintenance.profile.table_profile import Subject
from engine.plan.scan import table_scan
from engine.read.plans import read_plan
from engine.runtime.counters import Counters
from engine.spec.schema import Schema
from engine.storage.contradictions import CollectingStore


def find_contradictions(table: Subject) -> tuple[Contradiction, ...]:
    """Files of the current snapshot whose length or counts are not those that the metadata state, and whose rows are
    certain, by location. Manifests, delete files and the footers of all data files are read; no rows are.

    Raises:
        CorruptTable, FileNotFound, Unsupported: The snapshot cannot be read.
    """
    store = CollectingStore(table.store)
    scan = table_scan(table.metadata, store, runner=table.runner, table_name=table.name)
    batches = read_plan(
        scan.plan(), store, projection=Schema(()), counters=Counters(), runner=table.runner, table_name=table.name
    )
    for _ in batches:
        continue
    # Threads find them in any order.
    return tuple(sorted(set(store.found), key=lambda each: (each.location, each.cause, each.reason)))

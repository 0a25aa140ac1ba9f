"""Writing manifests, where the storage fails, and what later attempts use of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icebench.engine.commit.manifests import AttemptCache, write_manifests
from icebench.engine.commit.staging_context import Staging
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.manifest import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import StorageFailed
from tests.services.faulty_store import Fault, FaultyStore, Moment
from tests.unit.engine.commit.tables import data_file, metadata


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_write_that_fails_leaves_no_manifest(at: int, moment: Moment) -> None:
    store = MemoryStore()
    staging = Staging(store=FaultyStore(store, Fault(at, moment)), runner=LocalRunner(1))
    base = metadata(properties={"commit.manifest.target-size-bytes": "4000"})
    entries = [
        ManifestEntry(status=EntryStatus.ADDED, snapshot_id=1, data_file=data_file(f"f{n:05}")) for n in range(2_600)
    ]
    with pytest.raises(StorageFailed):
        write_manifests(entries, base=base, content=ManifestContent.DATA, snapshot_id=1, staging=staging)
    assert list(store.list("memory://wh")) == []


def test_what_inherits_other_numbers_is_made_again():
    """A list that has the manifest with another sequence number, or a base of another format version."""
    kept, made = AttemptCache[int](), iter(range(10))
    listed = ManifestFile(manifest_path="m", manifest_length=1, partition_spec_id=0, added_snapshot_id=1)
    sources = [[listed], [replace(listed, sequence_number=2)], [replace(listed, first_row_id=9)], [listed, listed]]
    found = [kept.get(metadata(2), each, lambda: next(made)) for each in sources * 2]
    assert found == [0, 1, 2, 3] * 2
    assert kept.get(metadata(3), [listed], lambda: next(made)) == 4

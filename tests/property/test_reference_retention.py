"""Every change that sets a branch or tag keeps those of its retention settings that the change does not name."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.commit import changes
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.changes.change import Change
from icebench.engine.commit.changes.cherry_pick import CherryPick
from icebench.engine.commit.changes.evolution import (
    ReplaceSortOrder,
    UpdateProperties,
    UpdateSchema,
    UpdateSpec,
    UpgradeFormat,
)
from icebench.engine.commit.changes.expire_snapshots import ExpireSnapshots
from icebench.engine.commit.changes.merge_append import MergeAppend
from icebench.engine.commit.changes.overwrite import Overwrite
from icebench.engine.commit.changes.read import Read
from icebench.engine.commit.changes.references import CreateRef, FastForward, RemoveRef, Rollback, SetCurrentSnapshot
from icebench.engine.commit.changes.replace_partitions import ReplacePartitions
from icebench.engine.commit.changes.replace_table import ReplaceTable
from icebench.engine.commit.changes.rewrite_files import RewriteFiles
from icebench.engine.commit.changes.rewrite_manifests import RewriteManifests
from icebench.engine.commit.changes.row_delta import RowDelta
from icebench.engine.commit.changes.statistics import UpdateStatistics
from icebench.engine.commit.changes.stream_batch import SetLastBatch, StreamBatch
from icebench.engine.commit.conflicts import Validation
from icebench.engine.commit.file_refs import ref_to
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.partitioning import UNPARTITIONED
from icebench.engine.spec.snapshots import SnapshotRef
from icebench.engine.spec.sorting import UNSORTED
from icebench.engine.spec.updates import SetSnapshotRef
from icebench.errors import EngineError
from tests.unit.engine.commit.tables import SCHEMA, World, data_file, metadata, world

SET_NO_REFERENCE = {
    Change,
    ExpireSnapshots,
    Read,
    RemoveRef,
    ReplaceSortOrder,
    SetLastBatch,
    UpdateProperties,
    UpdateSchema,
    UpdateSpec,
    UpdateStatistics,
    UpgradeFormat,
}
SETTINGS = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
Settings = Mapping[str, Any]
"""Retention settings by name; None: not set."""

ONE, TWO = data_file("one"), data_file("two")
BRANCHES = ("main", "b")


def retention(*, is_tag: bool) -> st.SearchStrategy[Settings]:
    """Any of the settings that a reference can have."""
    own = SETTINGS[2:] if is_tag else SETTINGS
    return st.fixed_dictionaries({name: st.none() | st.integers(1, 9) for name in own})


def new_file(w: World) -> DataFile:
    return data_file(f"f{len(w.metadata.snapshots)}")


def rewrite(w: World, branch: str) -> RewriteFiles:
    validation = Validation(starting_snapshot_id=w.metadata.refs[branch].snapshot_id, refuse_deletes="positions")
    return RewriteFiles(
        data_files=[new_file(w)],
        removed_data=[ref_to(ONE)],
        data_sequence_number=w.metadata.last_sequence_number,
        branch=branch,
        validation=validation,
    )


MOVES: Mapping[str, Callable[[World, str, Settings], Sequence[Change]]] = {
    "append": lambda w, at, named: [Append(data_files=[new_file(w)], branch=at)],
    "append with merging": lambda w, at, named: [MergeAppend(data_files=[new_file(w)], branch=at)],
    "overwrite": lambda w, at, named: [Overwrite(data_files=[new_file(w)], branch=at)],
    "overwrite partitions": lambda w, at, named: [ReplacePartitions(data_files=[new_file(w)], branch=at)],
    "rewrite": lambda w, at, named: [rewrite(w, at)],
    "rewrite manifests": lambda w, at, named: [RewriteManifests(branch=at)],
    "row delta": lambda w, at, named: [RowDelta(data_files=[new_file(w)], branch=at)],
    "batch": lambda w, at, named: [StreamBatch(data_files=[new_file(w)], stream_id="s", batch_id=0, branch=at)],
    "cherry-pick": lambda w, at, named: [CherryPick(wap_id="w")],
    "cherry-pick later": lambda w, at, named: [Append(data_files=[new_file(w)]), CherryPick(wap_id="w")],
    "roll back": lambda w, at, named: [Rollback(snapshot_id=101, branch=at)],
    "set current": lambda w, at, named: [SetCurrentSnapshot(104)],
    "fast-forward": lambda w, at, named: [FastForward(at, "b")],
    "replace": lambda w, at, named: [ReplaceTable(SCHEMA, UNPARTITIONED, UNSORTED), Append(data_files=[new_file(w)])],
    "overwrite branch": lambda w, at, named: [
        CreateRef(name=at, type="branch", snapshot_id=101, overwrite=True, **named)
    ],
    "overwrite tag": lambda w, at, named: [
        CreateRef(name="t", type="tag", overwrite=True, max_ref_age_ms=named["max_ref_age_ms"])
    ],
}


def table(settings: Mapping[str, Settings]) -> World:
    """main: 101 <- 102, with 103 staged on it; b: 101 <- 102 <- 104; the tag t at 101."""
    w = world(metadata(3))
    w.transaction().commit([Append(data_files=[ONE])])
    w.transaction().commit([Append(data_files=[TWO])])
    w.transaction().commit([Append(data_files=[data_file("staged")], is_visible=False, properties={"wap.id": "w"})])
    w.transaction().commit([Append(data_files=[data_file("three")], branch="b")])
    w.transaction().commit([CreateRef(name="t", type="tag", snapshot_id=101)])
    w.committer.apply(
        [], [SetSnapshotRef(name, replace(w.metadata.refs[name], **own)) for name, own in settings.items()]
    )
    return w


def settings_of(ref: SnapshotRef) -> Settings:
    return {name: getattr(ref, name) for name in SETTINGS}


@given(
    settings=st.fixed_dictionaries(
        {"main": retention(is_tag=False), "b": retention(is_tag=False), "t": retention(is_tag=True)}
    ),
    moves=st.lists(
        st.tuples(st.sampled_from(sorted(MOVES)), st.sampled_from(BRANCHES), retention(is_tag=False)),
        min_size=1,
        max_size=3,
    ),
)
def test_what_a_change_does_not_name_stays(
    settings: Mapping[str, Settings], moves: Sequence[tuple[str, str, Settings]]
) -> None:
    w = table(settings)
    wanted = {name: dict(settings_of(ref)) for name, ref in w.metadata.refs.items()}
    for kind, branch, named in moves:
        try:
            w.transaction().commit(MOVES[kind](w, branch, named))
        except EngineError:
            pass  # such as a rollback to what is no ancestor
        else:
            if kind == "overwrite branch":
                wanted[branch] |= {name: value for name, value in named.items() if value is not None}
            if kind == "overwrite tag" and named["max_ref_age_ms"] is not None:
                wanted["t"]["max_ref_age_ms"] = named["max_ref_age_ms"]
        assert {name: settings_of(ref) for name, ref in w.metadata.refs.items()} == wanted, kind


def test_every_kind_of_change_is_tried_moves_a_reference_and_keeps_its_settings() -> None:
    tried: set[type] = set()
    for kind, make in MOVES.items():
        w = table({"main": dict.fromkeys(SETTINGS, 7), "t": {"max_ref_age_ms": 7}})
        before = w.metadata.refs
        made = make(w, "main", dict.fromkeys(SETTINGS))
        w.transaction().commit(made)
        assert w.metadata.refs != before, kind
        assert all(settings_of(ref) == settings_of(w.metadata.refs[name]) for name, ref in before.items()), kind
        tried.update(map(type, made))
    names = (f"{changes.__name__}.{module.name}" for module in pkgutil.iter_modules(changes.__path__))
    classes = {c for name in names for _, c in inspect.getmembers(import_module(name), inspect.isclass)}
    assert {c for c in classes if hasattr(c, "stage") and c.__module__.startswith(changes.__name__)} == (
        tried | SET_NO_REFERENCE
    )

"""This project's engine: planning, and scans as Arrow record batches, through its public interface alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import pyarrow.compute as pc

import engine
from bench.engines.checksum import Checksum, checksum_of
from bench.engines.engine import Ability, Plan
from bench.engines.registry import EngineContext


class Icebench:
    """`engine.load_table` and its scans. A table handle keeps decoded manifests, so a fresh one plans cold."""

    name = "icebench"
    abilities = frozenset({Ability.PLAN, Ability.SCAN})

    def __init__(self, context: EngineContext) -> None:
        self.version = version("icebench")

    def open(self, metadata_location: str) -> engine.Table:
        return engine.load_table(metadata_location)

    def compile(self, handle: engine.Table, filter: str | None) -> str | None:
        # Making the scan parses and binds the filter, as planning does: what is wrong with it shows here.
        handle.scan(filter=filter)
        return filter

    def plan(self, handle: engine.Table, filter: str | None) -> Plan:
        plan = handle.scan(filter=filter).plan()

        def counters() -> dict[str, int]:
            pairs = pc.sum(pc.list_value_length(plan.files.column("deletes"))).as_py()
            return {**plan.counters, "delete_pairs": pairs or 0}

        return Plan(lambda: plan.files.column("file_path").to_pylist(), counters)

    def scan(self, handle: engine.Table, columns: Sequence[str], filter: str | None) -> Mapping[str, int]:
        for _ in handle.scan(filter=filter, columns=columns).to_batches():
            pass
        return {}

    def checksum(self, handle: engine.Table, columns: Sequence[str], filter: str | None) -> Checksum:
        return checksum_of(handle.scan(filter=filter, columns=columns).to_batches(), columns)

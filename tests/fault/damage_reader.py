"""Reads damaged files in a process that may crash, hang or run out of memory: see `test_damaged_files`."""

from __future__ import annotations

import json
import os
import resource
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from typing import Any

from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK
from icebench.engine.codec.manifests import reader as manifest
from icebench.engine.codec.manifests.listed_manifest import check_listed
from icebench.engine.formats.orc.source import OrcSource
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from icebench.engine.storage.contradictions import Verify
from icebench.errors import CommitFailed, ContradictionWarning, CorruptTable, EngineError
from tests.fault.damage import DAMAGES, damaged, vector_resealed
from tests.fault.documents import Answers, read_view, view_specimen
from tests.fault.guarded_calls import GuardedCalls
from tests.fault.specimens import FOREIGN, WAREHOUSE, Specimen, Zoo, make_zoo

ADDRESS_SPACE_BYTES = 4 << 30
"""How much more than at its start a reader may reserve."""


class Reader:
    """Everything that can be read, damaged or not."""

    def __init__(self) -> None:
        self.zoo: Zoo = make_zoo()
        self.answers = Answers(FileSystemCatalog(WAREHOUSE, self.zoo.store).load_state(("db", "v3")).metadata)
        self.view = read_view(view_specimen().data)
        self.by_kind: dict[str, list[Specimen]] = {kind: [] for kind in DAMAGES}
        for specimen in [*self.zoo.specimens, *self.answers.specimens, view_specimen()]:
            self.by_kind[specimen.kind].append(specimen)

    def case(self, seed: int, index: int) -> tuple[Specimen, str, bytes]:
        """The file of a case, what is done to it, and its damaged bytes."""
        random = Random(f"{seed}-{index}")
        specimen = random.choice(self.by_kind[random.choice(list(self.by_kind))])
        damage, data = damaged(specimen.kind, specimen.data, f"{seed}-{index}-damage")
        return specimen, damage, data

    def is_right(self, specimen: Specimen, data: bytes, verify: Verify = "warn") -> bool:
        """Whether reading gives what it gave before the damage; raises what reading raises."""
        if specimen.kind == "view metadata":
            return read_view(data) == self.view
        if specimen.kind == "rest answer":
            found = self.answers.read(specimen.table, data)
            return found == self.answers.truth[specimen.table] or found == "Unknown"
        truth = self.zoo.truth[specimen.table]
        return all(truth[name] == value for name, value in self.zoo.read_damaged(specimen, data, verify).items())


_ACCOUNTS = OrcSource.accounts_for_all_bytes
_reader: list[Reader] = []


def warm_up() -> None:
    """Make what is damaged, and read it once with compiled kernels and without."""
    assert LIST_CHUNKS.load()
    assert SLIM_FOOTER.load()
    made = Reader()
    _reader.append(made)
    for interprets in (False, True):
        _choose_kernels(interprets=interprets)
        for specimen in made.zoo.specimens:
            assert made.is_right(specimen, specimen.data), specimen


def run(job: dict[str, Any]) -> None:
    """Read cases ``first`` to before ``end`` of a seed; two lines for each on ``pipe``: its number, what came of it."""
    pipe = os.open(job["pipe"], os.O_WRONLY)
    limit = status("VmSize") + ADDRESS_SPACE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for index in range(job["first"], job["end"]):
        os.write(pipe, f"{index}\n".encode())
        os.write(pipe, json.dumps(outcome(_reader[0], job["seed"], index)).encode() + b"\n")


def outcome(reader: Reader, seed: int, index: int) -> dict[str, Any]:
    """Read one damaged file: what was damaged, how, and what came of it."""
    specimen, damage, data = reader.case(seed, index)
    _choose_kernels(interprets=index % 2 == 0)
    guards = GuardedCalls(Random(index))
    if index % 8 == 5:
        guards.install()
    tells_length = index % 4 < 2
    _choose_lengths(checked=tells_length)
    verify: Verify = "strict" if index % 8 >= 4 else "warn"
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    started = time.monotonic()
    detail = ""
    try:
        with warnings.catch_warnings(record=True, action="always", category=ContradictionWarning) as said:
            is_right = reader.is_right(specimen, data, verify)
        is_named = any(str(each.message).startswith(f"{specimen.location}: ") for each in said)
        tells_length &= not is_named
        came = "right" if is_right else _different(specimen, damage, data, tells_length=tells_length)
    except (CommitFailed, MemoryError):
        came, detail = "wrong error", traceback.format_exc()
    except EngineError as error:
        came, detail = type(error).__name__, str(error)
        if isinstance(error, CorruptTable) and not error.location:
            came, detail = "error without a place", traceback.format_exc()
        if "\n" in str(error) or len(str(error)) > 2000:
            came = "unreadable error"
    except Exception:  # noqa: BLE001 - that is what is looked for
        came, detail = "wrong error", traceback.format_exc()
    finally:
        copied_bytes = guards.remove()
    return {
        "index": index,
        "kind": specimen.kind,
        "table": specimen.table,
        "damage": damage,
        "came": came,
        "detail": detail[-3000:],
        "seconds": round(time.monotonic() - started, 3),
        "peak_bytes": max(0, status("VmHWM") - before - copied_bytes),
    }


def _different(specimen: Specimen, damage: str, data: bytes, *, tells_length: bool) -> str:
    """Whether something in the table gives the difference away that reading neither saw nor warned of."""
    if (
        specimen.knows_length
        and (tells_length or (not specimen.kind.endswith("manifest") and specimen.table not in FOREIGN))
        and len(data) != len(specimen.data)
    ):
        return "wrong rows of a file of another length"
    changed = [place for place, (a, b) in enumerate(zip(specimen.data, data, strict=False)) if a != b]
    if damage != vector_resealed.__name__ and any(place in sealed for place in changed for sealed in specimen.sealed):
        return "wrong rows behind a checksum"
    return "different"


def _choose_kernels(*, interprets: bool) -> None:
    for kernel in (LIST_CHUNKS, SLIM_FOOTER, DECODE_CHUNK):
        setattr(kernel, "should_use", lambda _: not interprets)  # noqa: B010 for this process only


def _choose_lengths(*, checked: bool) -> None:
    """A manifest list that has the length of the damaged manifest, as a broken writer's would, lets the damage reach
    what decodes entries; and a manifest that has that of a damaged file, what decodes rows."""
    setattr(manifest, "check_listed", check_listed if checked else lambda *_, **__: None)  # noqa: B010 as above
    setattr(OrcSource, "accounts_for_all_bytes", _ACCOUNTS if checked else True)  # noqa: B010 as above


def status(name: str) -> int:
    """A size in bytes that Linux knows of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(name)

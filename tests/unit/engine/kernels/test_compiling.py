"""Kernels give the same interpreted and compiled, and are compiled where no code can be kept."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from icebench.engine.expressions import kernels
from icebench.engine.kernels import policy
from icebench.engine.kernels.compiling import jit, kernel
from icebench.engine.plan.location_hashes import hash_locations

STRINGS = [
    b"",
    b"a",
    b"file:/x/y",
    b"s3://bucket/x/y",
    b"s3://bucket",
    b"s3:/x:/y//z",
    b"://x/y",
    b"a/b:c/d",
    b"/a://b\n/c",
    b"c:\\d",
    b"\xff\x01\x02\x03",
    b"\x00\x00\x00\x80",
    b"12345678",
    b"\x01" * 20,
]
OFFSETS = np.cumsum([0, *map(len, STRINGS)], dtype=np.int64)
DATA = np.frombuffer(b"".join(STRINGS), np.uint8)
SOME = np.arange(len(STRINGS)) != 4
CUTS = [b"a", b"b", b"s3"]
CUT_OFFSETS, CUT_DATA = np.cumsum([0, *map(len, CUTS)], dtype=np.int64), np.frombuffer(b"".join(CUTS), np.uint8)


def _twice(x: int) -> int:
    return 2 * x


@kernel(helpers=(_twice,))
def doubled(values: np.ndarray) -> np.ndarray:
    found = np.empty_like(values)
    for i in range(len(values)):
        found[i] = _twice(values[i])
    return found


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (doubled, (np.arange(5),)),
        (hash_locations, (OFFSETS, DATA)),
        (kernels.byte_segments, (OFFSETS, DATA, SOME, kernels.ALL_VALID, CUT_OFFSETS, CUT_DATA)),
        (kernels.byte_segments, (OFFSETS, DATA, kernels.ALL_VALID, SOME, CUT_OFFSETS, CUT_DATA)),
    ],
)
def test_interpreted_as_compiled(function, arguments, monkeypatch):
    with np.errstate(over="ignore"):
        plain = function._plain(*arguments)
    monkeypatch.setattr(policy._Process, "has_numba", True)
    compiled = function(*arguments)
    for a, b in zip(*(found if isinstance(found, tuple) else (found,) for found in (plain, compiled)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_a_process_compiles_once_it_has_enough_to_do(monkeypatch):
    monkeypatch.setattr(policy._Process, "has_numba", False)
    monkeypatch.setattr(policy._Process, "spent_ns", 0)
    assert policy.should_interpret(400_000_000)
    assert not policy.should_interpret(400_000_000)
    assert policy.should_interpret(100_000_000)
    assert not policy.should_interpret(1)
    jit(_twice)
    assert not policy.should_interpret(0)


def test_without_a_place_for_compiled_code_it_is_compiled_anyway(monkeypatch):
    monkeypatch.setattr("numba.core.caching.CompileResultCacheImpl._locator_classes", [])
    monkeypatch.setattr(policy._Process, "has_numba", True)
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        assert jit(_twice)(4) == 8


INTERRUPTED = """
import os, signal, sys
import numpy as np
from icebench.engine.codec.avro.compiled.machine_kernels import GATHER
from icebench.engine.kernels import policy
from icebench.engine.plan.location_hashes import hash_locations

class Interrupt:
    def find_spec(self, name, *_):
        if name == "numba.core.types":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

def numba_kernel():
    return hash_locations(np.array([0, 2]), np.array([97, 97], np.uint8)).all()

policy.note_numba()
sys.meta_path.insert(0, Interrupt())
try:
    numba_kernel() if sys.argv[1] == "Numba" else GATHER.load()
except KeyboardInterrupt:
    print("interrupted, then", GATHER.load(), numba_kernel())
"""


@pytest.mark.parametrize("kind", ["Numba", "machine code"])
def test_an_interrupt_while_numba_is_loaded_leaves_kernels_usable(kind, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, kind], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "interrupted, then True True\n", done.stderr

"""Machine code of kernels, kept on disk so that a later process runs it without loading Numba.

Loading Numba and one function of its own cache takes some 0.6 s, loading llvmlite and linking an object file less than
a tenth of that. What is kept is what Numba compiled: the object file of a function that takes an address and returns a
number, allocates nothing, raises nothing and calls nothing but C's functions for memory.

Code is run only if nobody else can have written it: it is in a directory, and in a file, that belong to the user and
that nobody else may write. It is run only where it was made: whatever it depends on is part of its name and of its
contents, which a checksum covers. What does not pass is ignored, as if nothing had been kept.

Of llvmlite this uses its documented binding (MCJIT, `add_object_file`). Of Numba it uses what is private: options of
`njit`, that a compiled ``int64(int64)`` is ``int32 name(int64 *result, void **error, int64)``, and of its library
`_final_module` and `_get_compiled_object`. `tests/unit/engine/kernels/test_machine_code.py` pins that.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from tempfile import mkstemp
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

Function: TypeAlias = Callable[[int], int]
"""Compiled code, called without the GIL: takes an address, returns a number."""

_ENGINE = Path(__file__).parents[1]
_DIRECTORY = "icebench-machine-code"
_WRITABLE_BY_OTHERS = 0o022
_DIGEST_BYTES = 32
_LENGTH = struct.Struct("<I")
_MEMORY_FUNCTIONS = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
_INSTRUCTIONS = (
    "abs", "assume", "bswap", "ctlz", "ctpop", "cttz", "fshl", "fshr", "lifetime", "masked.gather", "masked.load",
    "masked.scatter", "masked.store", "smax", "smin", "uadd.sat", "uadd.with.overflow", "umax", "umin", "usub.sat",
    "usub.with.overflow", "vector.reduce",
)  # fmt: skip
"""Intrinsic functions of LLVM that become instructions, never calls."""
_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64
)
_KEPT_ALIVE: list[object] = []
"""What owns linked code; it stays until the process ends, as another thread may be running it."""


class MachineCode:
    """One compiled function, from kept machine code or compiled now. Thread-safe.

    Args:
        name: What to call its file.
        sources: The files that it is compiled from; a relative path is one within `engine/`.
        directories: Where code may be kept, the best place first; by default where Numba keeps its own.
    """

    def __init__(self, name: str, sources: Sequence[str | Path], directories: Sequence[Path] | None = None) -> None:
        self._name = name
        self._sources = [_ENGINE / source for source in sources]
        self._stamps = self._stamp()
        self._directories = (
            numba_directories(self._sources[0].parent, os.environ) if directories is None else directories
        )
        self._lock = Lock()
        self._sought = False
        self._function: Function | None = None

    def load(self) -> Function | None:
        """Load the function from kept code, without Numba. Returns None if there is none; looks only once."""
        if not self._sought:
            with self._lock:
                if not self._sought:
                    self._function = self._load()
                    self._sought = True
        return self._function

    def compile(self, function: Callable[[int], int]) -> Function | None:
        """Load the function from kept code, or compile it with Numba and keep the code.

        Returns:
            None where nothing can be kept, or where the code would not run without Numba.
        """
        if (loaded := self.load()) is not None:
            return loaded
        with self._lock:
            if self._function is None and (place := self._place()) is not None:
                try:
                    made = _compile_function(function)
                except (AttributeError, KeyError):
                    made = None  # Numba's insides are others than the docstring of this module says
                if made is not None:
                    with suppress(OSError):
                        key = self._key()
                        _write(place, self._file_name(key), _contents(key, *made))
                    self._function = _link(*made)
            return self._function

    def _load(self) -> Function | None:
        if not any((directory / _DIRECTORY).is_dir() for directory in self._directories):
            return None  # before llvmlite is loaded for nothing
        try:
            key = self._key()
            for directory in self._directories:
                data = _read(directory / _DIRECTORY, self._file_name(key))
                found = None if data is None else _parse(key, data)
                if found is not None:
                    return _link(*found)
        except OSError:
            pass  # a source cannot be read, or memory not be made executable
        return None

    def _place(self) -> Path | None:
        """The first place where code can be kept."""
        for directory in self._directories:
            place = directory / _DIRECTORY
            with suppress(OSError):
                directory.mkdir(parents=True, exist_ok=True)
                place.mkdir(mode=0o700, exist_ok=True)
                descriptor = _open_own(place)
                if descriptor is not None:
                    os.close(descriptor)
                    if os.access(place, os.W_OK | os.X_OK):
                        return place
        return None

    def _stamp(self) -> list[tuple[int, int]] | None:
        try:
            return [(status.st_mtime_ns, status.st_size) for status in map(os.stat, self._sources)]
        except OSError:
            return None

    def _key(self) -> bytes:
        if self._stamps is None or self._stamp() != self._stamps:
            raise OSError("there are no sources, or they changed after they were imported")
        return _digest([made_for(), self._name.encode(), *(path.read_bytes() for path in self._sources)])

    def _file_name(self, key: bytes) -> str:
        return f"{self._name}.{key.hex()[:_DIGEST_BYTES]}.o"


def _contents(key: bytes, symbol: str, code: bytes) -> bytes:
    body = key + _LENGTH.pack(len(symbol)) + symbol.encode() + code
    return hashlib.sha256(body).digest() + body


def _parse(key: bytes, data: bytes) -> tuple[str, bytes] | None:
    """Parse the symbol and the object file; None if the data is damaged or belongs to another machine or source."""
    digest, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest or body[:_DIGEST_BYTES] != key:
        return None
    start = _DIGEST_BYTES + _LENGTH.size
    (length,) = _LENGTH.unpack_from(body, _DIGEST_BYTES)
    return body[start : start + length].decode(), body[start + length :]


def numba_directories(sources: Path, environment: Mapping[str, str]) -> list[Path]:
    """Where Numba keeps the code of functions in a directory: ``NUMBA_CACHE_DIR``, beside them, or the user's cache."""
    given = environment.get("NUMBA_CACHE_DIR")
    if given:
        return [Path(given)]
    home = Path(environment.get("HOME") or os.sep)
    users = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return [sources / "__pycache__", Path(environment.get("XDG_CACHE_HOME") or users) / "numba"]


@cache
def made_for() -> bytes:
    """A digest of all that machine code depends on beside its sources: versions, the processor, Numba's options."""
    # local import: most processes have too little to do for compiled code
    import llvmlite
    import llvmlite.binding as llvm

    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        features = ""  # llvmlite knows none for this processor, and Numba uses none then
    options = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k != "NUMBA_CACHE_DIR")
    facts = (
        sys.version,
        sys.byteorder,
        struct.calcsize("P"),
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        features,
        llvmlite.__version__,
        llvm.llvm_version_info,
        np.__version__,
        options,
    )
    return _digest([repr(facts).encode(), _numba_version(), Path(__file__).read_bytes()])


def _numba_version() -> bytes:
    """Numba's own file of its version: importing `importlib.metadata` for it would take a third of all the loading."""
    found = find_spec("numba")
    if found is None or found.origin is None:
        raise FileNotFoundError("numba")
    return Path(found.origin).with_name("_version.py").read_bytes()


def _digest(parts: Sequence[bytes]) -> bytes:
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def _open_own(path: Path | str, within: int | None = None) -> int | None:
    """A descriptor of a directory, or of a file within one; None if anyone but this user could have written it.

    Raises:
        OSError: It is not there, or a symbolic link.
    """
    if not hasattr(os, "geteuid"):
        return None  # Windows says in other ways who may write
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_DIRECTORY if within is None else 0)
    descriptor = os.open(path, flags, dir_fd=within)
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS:
        return descriptor
    os.close(descriptor)
    return None


def _read(directory: Path, name: str) -> bytes | None:
    try:
        within = _open_own(directory)
        if within is None:
            return None
        try:
            descriptor = _open_own(name, within)
        finally:
            os.close(within)
        if descriptor is None:
            return None
        with FileIO(descriptor) as file:
            return file.readall()
    except OSError:
        return None


def _write(directory: Path, name: str, data: bytes) -> None:
    descriptor, path = mkstemp(dir=directory)
    temporary = Path(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(directory / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _compile_function(function: Callable[[int], int]) -> tuple[str, bytes] | None:
    """Name in the object file, and the file; None if the code needs more than itself and C's functions for memory."""
    # local import: Numba takes longer to load than a small table to plan
    import numba

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None
    # Without Numba's reference counts, as nothing is allocated; without the wrapper by which Python calls, which leans
    # on Python and Numba; an error of Numba's own is a status, and no exception.
    options: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made = numba.njit(numba.int64(numba.int64), **options)(function)
    result: Any = made.overloads[numba.int64,]
    symbol: str = result.fndesc.llvm_func_name
    module = result.library._final_module  # noqa: SLF001 - see the module's docstring
    arguments = [str(argument.type) for argument in module.get_function(symbol).arguments]
    foreign = [f.name for f in module.functions if f.is_declaration and not _needs_nothing(f.name)]
    foreign += [variable.name for variable in module.global_variables if variable.is_declaration]
    if foreign or len(arguments) != len(_ENTRY._argtypes_) or arguments[-1] != "i64":
        return None
    return symbol, bytes(result.library._get_compiled_object())  # noqa: SLF001


def _needs_nothing(name: str) -> bool:
    return name.startswith((*_MEMORY_FUNCTIONS, *(f"llvm.{instruction}." for instruction in _INSTRUCTIONS)))


def _link(symbol: str, code: bytes) -> Function:
    """The function in an object file, in executable memory that stays until the process ends."""
    # local import: most processes have too little to do for compiled code
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.check_jit_execution()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    entry = _ENTRY(engine.get_function_address(symbol))
    _KEPT_ALIVE.append(engine)

    def call(address: int) -> int:
        result, error = ctypes.c_int64(), ctypes.c_void_p()
        if entry(ctypes.byref(result), ctypes.byref(error), address) != 0:
            raise RuntimeError("compiled code failed")
        return result.value

    return call

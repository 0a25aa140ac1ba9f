"""Kept machine code is run without Numba, and only where nobody else can have written it and where it was made."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from icebench.engine.kernels import machine_code
from icebench.engine.kernels.machine_code import Function, MachineCode, numba_directories

FACTOR = 3


def tripled_at(address: int) -> int:
    """Needs nothing but itself."""
    return FACTOR * address


def logarithm(number: int) -> int:
    """Needs the library of mathematics."""
    return int(np.log(number))


def refusing(number: int) -> int:
    """Raises."""
    if number < 0:
        raise ValueError
    return number


@pytest.fixture(autouse=True)
def no_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.py"
    path.write_text("kernels")
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def code(source: Path, place: Path) -> MachineCode:
    return MachineCode("tripled", [source], [place])


@pytest.fixture
def again(code: MachineCode, source: Path, place: Path):
    """The function as another process would find it, after one has compiled it."""
    function = code.compile(tripled_at)
    assert function is not None
    assert function(14) == 42

    def load(name: str = "tripled") -> Function | None:
        return MachineCode(name, [source], [place]).load()

    return load


def run(function: Function | None, number: int) -> int:
    assert function is not None
    return function(number)


def kept(place: Path) -> Path:
    (found,) = place.rglob("*.o")
    return found


def test_what_was_compiled_is_loaded(again):
    assert run(again(), -5) == -15


def test_nothing_kept(code: MachineCode):
    assert code.load() is None


def test_a_process_that_loads_it_needs_no_numba(again, source: Path, place: Path):
    script = (
        "import sys; from pathlib import Path; from icebench.engine.kernels.machine_code import MachineCode\n"
        f"function = MachineCode('tripled', [Path({str(source)!r})], [Path({str(place)!r})]).load()\n"
        "assert function(7) == 21\n"
        "assert 'numba' not in sys.modules, 'Numba was loaded'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(machine_code.__file__).parents[2])


def test_it_belongs_to_its_user_alone(again, place: Path):
    assert kept(place).stat().st_mode & 0o777 == 0o600
    assert kept(place).parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in kept(place).parent.iterdir()] == [kept(place).name]  # no temporary files


@pytest.mark.parametrize("at", [0, 31, 32, 63, 64, 70, 200, -1])
def test_damage_is_ignored(again, place: Path, at: int):
    data = bytearray(kept(place).read_bytes())
    data[at] ^= 1
    kept(place).write_bytes(data)
    assert again() is None


@pytest.mark.parametrize("size", [0, 1, 32, 64, 67, 68, 100])
def test_a_cut_file_is_ignored(again, place: Path, size: int):
    kept(place).write_bytes(kept(place).read_bytes()[:size])
    assert again() is None


def test_damage_is_compiled_over(again, source: Path, place: Path):
    kept(place).write_bytes(b"")
    assert run(MachineCode("tripled", [source], [place]).compile(tripled_at), 1) == 3
    assert run(again(), 2) == 6


@pytest.mark.parametrize("who", ["file", "directory"])
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_may_write_is_not_run(again, place: Path, who: str, mode: int):
    path = kept(place) if who == "file" else kept(place).parent
    path.chmod(path.stat().st_mode | mode)
    assert again() is None


def test_what_belongs_to_another_is_not_run(again, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert again() is None


@pytest.mark.parametrize("who", ["file", "directory"])
def test_symbolic_links_are_not_followed(again, place: Path, who: str):
    path = kept(place) if who == "file" else kept(place).parent
    moved = path.rename(place / "elsewhere")
    path.symlink_to(moved)
    assert again() is None


def test_code_of_other_sources_is_not_run(again, source: Path):
    source.write_text("other kernels")
    assert again() is None


def test_code_of_another_function_is_not_run(again, place: Path):
    assert again("doubled") is None
    other = MachineCode("doubled", [place / "../source.py"], [place])
    kept(place).rename(kept(place).with_name(other._file_name(other._key())))
    assert other.load() is None


def test_without_sources_nothing_is_kept(source: Path, place: Path):
    code = MachineCode("tripled", [source / "below"], [place])
    assert code.load() is None
    assert run(code.compile(tripled_at), 2) == 6
    assert not list(place.rglob("*.o"))


def test_sources_that_changed_after_import_are_not_kept_as_what_was_compiled(code: MachineCode, source: Path, place):
    source.write_text("changed meanwhile")
    assert run(code.compile(tripled_at), 2) == 6
    assert not list(place.rglob("*.o"))


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("llvmlite.__version__", "0.1"),
        ("numpy.__version__", "1.0"),
        ("sys.version", "3.10"),
        ("sys.byteorder", "middle"),
        ("llvmlite.binding.llvm_version_info", (1, 2, 3)),
        ("llvmlite.binding.get_host_cpu_name", lambda: "another"),
        ("llvmlite.binding.get_process_triple", lambda: "another"),
        ("struct.calcsize", lambda _: 4),
        ("icebench.engine.kernels.machine_code._numba_version", lambda: b"0.1"),
    ],
)
def test_code_that_was_made_elsewhere_is_not_run(again, monkeypatch, target: str, value: object):
    monkeypatch.setattr(target, value)
    machine_code.made_for.cache_clear()
    try:
        assert again() is None
    finally:
        monkeypatch.undo()
        machine_code.made_for.cache_clear()
    assert again() is not None


def test_code_of_other_options_is_not_run(again, monkeypatch):
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    machine_code.made_for.cache_clear()
    try:
        assert again() is None
    finally:
        machine_code.made_for.cache_clear()


def test_code_that_needs_more_is_not_kept(code: MachineCode, place: Path):
    assert code.compile(logarithm) is None
    assert not list(place.rglob("*.o"))


def test_what_compiled_code_raises_is_an_error(code: MachineCode):
    refused = code.compile(refusing)
    assert run(refused, 3) == 3
    with pytest.raises(RuntimeError, match="compiled code failed"):
        run(refused, -1)


def test_numba_is_as_assumed():
    made = machine_code._compile_function(tripled_at)
    assert made is not None
    symbol, contents = made
    assert symbol.encode() in contents
    assert machine_code._link(symbol, contents)(5) == 15


def test_without_a_place_nothing_is_compiled(source: Path, tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("in the way")
    assert MachineCode("tripled", [source], [file / "below"]).compile(tripled_at) is None


def test_a_read_only_place_is_passed_over(source: Path, tmp_path: Path, monkeypatch):
    (tmp_path / "fixed" / machine_code._DIRECTORY).mkdir(parents=True, mode=0o500)
    # root may write everywhere
    monkeypatch.setattr(os, "access", lambda path, _: "fixed" not in str(path))
    places = [tmp_path / "fixed", tmp_path / "free"]
    assert run(MachineCode("tripled", [source], places).compile(tripled_at), 2) == 6
    assert not list((tmp_path / "fixed").rglob("*.o"))
    assert run(MachineCode("tripled", [source], places).load(), 2) == 6


def test_a_place_that_others_may_write_is_passed_over(source: Path, tmp_path: Path):
    open_to_all = tmp_path / "shared" / machine_code._DIRECTORY
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    places = [tmp_path / "shared", tmp_path / "own"]
    assert run(MachineCode("tripled", [source], places).compile(tripled_at), 2) == 6
    assert not list(open_to_all.iterdir())
    assert run(MachineCode("tripled", [source], places).load(), 2) == 6


def test_a_failure_to_write_costs_only_the_next_process(code: MachineCode, place: Path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", full)
    assert run(code.compile(tripled_at), 2) == 6
    assert not [path for path in place.rglob("*") if path.is_file()]


def test_threads_share_one_function(source: Path, place: Path, again):
    code = MachineCode("tripled", [source], [place])
    found: list[Function | None] = []
    threads = [threading.Thread(target=lambda: found.append(code.load())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_directories_are_those_of_numba():
    sources = Path("/x/engine/codec")
    assert numba_directories(sources, {"NUMBA_CACHE_DIR": "/c"}) == [Path("/c")]
    assert numba_directories(sources, {"HOME": "/h", "XDG_CACHE_HOME": "/u"}) == [
        sources / "__pycache__",
        Path("/u/numba"),
    ]
    assert len(numba_directories(sources, {"HOME": "/h"})) == 2

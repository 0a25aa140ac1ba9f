from __future__ import annotations

import errno
import io

import click
import pytest

from icebench.bench.cli.failures import BUG, INTERRUPTED, USER_ERROR, explain, run_guarded
from icebench.bench.errors import ConfigError, EngineFailed
from icebench.errors import CorruptTable, Invalid, StorageFailed


def guarded(error: BaseException, *, debug: bool = False) -> tuple[int, str]:
    def fail() -> int:
        raise error

    err = io.StringIO()
    return run_guarded(fail, debug=lambda: debug, err=err), err.getvalue()


def test_success_gives_the_code_of_the_action_and_no_output() -> None:
    err = io.StringIO()
    assert run_guarded(lambda: 1, debug=lambda: True, err=err) == 1
    assert err.getvalue() == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConfigError("unknown layout 'x'", path="layouts[1]"), "layouts[1]: unknown layout 'x'"),
        (EngineFailed("duckdb failed:\n  Binder Error"), "duckdb failed: Binder Error"),
        (
            CorruptTable("not Avro", location="file:///t/m.avro", path="block 2"),
            "file:///t/m.avro at block 2: not Avro",
        ),
        (StorageFailed("disk full"), "disk full"),
        (Invalid("no column 'a'; did you mean 'b'?"), "no column 'a'; did you mean 'b'?"),
        (
            OSError(errno.ENOSPC, "No space left on device", "results/runs/r.jsonl"),
            "results/runs/r.jsonl: No space left on device; free some space, or choose another --results directory",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "results"),
            "results: Read-only file system; choose a directory that can be written with --results",
        ),
        (
            NotADirectoryError(errno.ENOTDIR, "Not a directory", "afile/x"),
            "afile/x: Not a directory; a part of the path is a file; choose another directory",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.toml"), "a.toml: No such file or directory"),
        (MemoryError(), "out of memory; take a smaller --scale, or a machine with more"),
        (click.ClickException("not so"), "not so"),
        (ConfigError("no \x1b[31mx in a://u:p w@h?password=q&a=b"), r"no \x1b[31mx in a://u:***@h?password=***&a=b"),
    ],
)
def test_errors_that_the_user_can_mend_are_one_line(error: Exception, line: str) -> None:
    assert guarded(error) == (USER_ERROR, f"icebench: {line}\n")


def test_a_traceback_shows_no_secret() -> None:
    for error in (ConfigError("postgresql://u:secret@h/db is open already"), KeyError("postgresql://u:secret@h/db")):
        _, text = guarded(error, debug=True)
        assert "Traceback" in text
        assert "secret" not in text


def test_debug_adds_the_traceback() -> None:
    code, text = guarded(ConfigError("wrong"), debug=True)
    assert code == USER_ERROR
    assert "Traceback" in text
    assert text.endswith("icebench: wrong\n")


@pytest.mark.parametrize("error", [ZeroDivisionError("oops"), KeyError("k"), OSError("without a number")])
def test_a_bug_shows_its_traceback_and_asks_for_a_report(error: Exception) -> None:
    code, text = guarded(error)
    assert code == BUG
    assert "Traceback" in text
    assert "this is a bug in icebench; please report it" in text
    assert explain(error) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_quiet(error: BaseException) -> None:
    assert guarded(error) == (INTERRUPTED, "\nicebench: stopped\n")


def test_usage_errors_show_the_usage() -> None:
    code, text = guarded(click.UsageError("no such option"))
    assert code == USER_ERROR
    assert "Error: no such option" in text
    assert guarded(click.UsageError("no a://u:pw@h"))[1].endswith("Error: no a://u:***@h\n")

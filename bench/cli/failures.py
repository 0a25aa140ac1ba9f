"""How the program ends when something went wrong: one line for what the user can fix, a traceback for our own bugs."""

from __future__ import annotations

import errno
import shutil
import sys
import traceback
from collections.abc import Callable
from typing import TextIO

import click

from icebench.bench.errors import BenchError
from icebench.bench.report.wrapping import wrapped
from icebench.engine.errors import EngineError, without_secrets

_USAGE = "Error: "
"""What click writes before the message of a usage error."""
USER_ERROR = 2
BUG = 70
INTERRUPTED = 130
CLOSED_PIPE = 141
ISSUES = "please report it with the lines above and the command that you ran"

_EXTRAS = {
    **dict.fromkeys(
        (
            "cpuinfo",
            "jinja2",
            "matplotlib",
            "packaging",
            "psutil",
            "pydoe",
            "pyinstrument",
            "pyspark",
            "ruptures",
            "scipy",
        ),
        "bench",
    ),
    "asv": "dev",
    **dict.fromkeys(("chdb", "duckdb", "pandas", "polars", "pyiceberg"), "peers"),
    "xxhash": "spark",
}
"""The extra that brings a package."""
_ADVICE = {
    errno.ENOSPC: "free some space, or choose another --results directory",
    errno.EDQUOT: "free some space, or choose another --results directory",
    errno.EROFS: "choose a directory that can be written with --results",
    errno.ENOTDIR: "a part of the path is a file; choose another directory",
    errno.EACCES: "check the permissions, or choose another directory with --results",
    errno.EPERM: "check the permissions, or choose another directory with --results",
    errno.EMFILE: "raise the limit of open files: 'ulimit -n 4096'",
}


def run_guarded(action: Callable[[], int], *, debug: Callable[[], bool], err: TextIO | None = None) -> int:
    """The exit code of `action`, with every exception turned into what the user should see.

    Args:
        action: Gives an exit code, or raises.
        debug: Whether tracebacks are wanted for errors of the user's too; asked only after a failure.
        err: Where messages go; standard error unless given.
    """
    out = err or sys.stderr
    try:
        return action()
    except click.exceptions.Exit as asked:
        return asked.exit_code
    except (click.Abort, KeyboardInterrupt) as stopped:
        said = str(stopped.__cause__ or stopped)  # click raises its own from an interrupt
        out.write(f"\nicebench: {printable(said) or 'stopped'}\n")
        return INTERRUPTED
    except click.UsageError as error:
        message = f"{_USAGE}{printable(without_secrets(error.format_message()))}"
        click.UsageError(_fitting(message, out).removeprefix(_USAGE), error.ctx).show(out)
        return USER_ERROR
    except Exception as error:  # noqa: BLE001 - the outermost frame: nothing may pass it
        line = explain(error)
        if line is None or debug():
            out.write(without_secrets("".join(traceback.format_exception(error))))
        if line is None:
            out.write(f"icebench: this is a bug in icebench; {ISSUES}\n")
            return BUG
        out.write(_fitting(f"icebench: {printable(without_secrets(line))}\n", out))
        return USER_ERROR


def _fitting(text: str, out: TextIO) -> str:
    """The text in lines that a terminal need not break; a file or a pipe gets it as it is."""
    if not out.isatty():
        return text
    end = "\n" if text.endswith("\n") else ""
    return wrapped(text, shutil.get_terminal_size().columns) + end


def explain(error: Exception) -> str | None:
    """One line for an error that the user can fix: what, where, what to do; None for a bug."""
    match error:
        case EngineError() | BenchError():
            return _one_line(str(error))
        case click.ClickException():
            return _one_line(error.format_message())
        case ModuleNotFoundError(name=str() as name) if (package := name.partition(".")[0]) in _EXTRAS:
            return f"{package} is not installed: pip install 'icebench[{_EXTRAS[package]}]'"
        case OSError(errno=number) if number is not None:
            where = " to ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
            said = error.strerror or type(error).__name__
            advice = _ADVICE.get(number)
            return _one_line((f"{where}: " if where else "") + said + (f"; {advice}" if advice else ""))
        case MemoryError():
            return "out of memory; take a smaller --scale, or a machine with more"
    return None


def printable(text: str) -> str:
    """The text with escapes for control characters, which could command the terminal; line ends and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _one_line(text: str) -> str:
    return " ".join(text.split())

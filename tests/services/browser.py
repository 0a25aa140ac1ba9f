"""The browser that the report is tested in: Chromium or Chrome, by whatever name and wherever it is installed.

`python -m tests.services.browser` installs Chromium where there is none and apt-get can do so without a password;
`make test` does that. Where it cannot, it says what to do: tests in a browser are then skipped, and fail in CI.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_APPLICATIONS = (
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
)
_PACKAGE = "chromium"
MISSING = (
    "no Chromium or Chrome was found: 'apt-get install chromium' (Debian), 'brew install --cask chromium' (macOS), or "
    "another browser of theirs on the PATH"
)
"""What to say where there is none."""


def find_browser() -> str | None:
    """The program; None where there is none."""
    on_path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    return on_path or next((str(program) for program in _APPLICATIONS if program.is_file()), None)


def install() -> bool:
    """Have apt-get install Chromium, if it can without asking for a password; whether there is a browser now."""
    as_root = _as_root()
    if shutil.which("apt-get") is None or as_root is None:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (("update",), ("install", "--yes", "--no-install-recommends", _PACKAGE)):
        done = subprocess.run(
            [*as_root, "apt-get", "--quiet", *arguments], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.stderr.write(f"icebench: apt-get {arguments[0]} failed: {_last_line(done.stdout + done.stderr)}\n")
            return False
    return find_browser() is not None


def _as_root() -> Sequence[str] | None:
    """What to put before a command that root must run; None where that would ask for a password."""
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(["sudo", "--non-interactive", "true"], capture_output=True, check=False)
    return None if asked.returncode else ("sudo", "--non-interactive")


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


def main() -> None:
    """Installs a browser unless there is one; says so only when there is something to do."""
    if find_browser() is not None:
        return
    sys.stderr.write("Installing Chromium, for the tests of the report\n")
    if not install():
        sys.stderr.write(f"icebench: {MISSING}\n")


if __name__ == "__main__":
    main()

"""PostgreSQL as a child process that listens on a Unix socket only, in a directory of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.processes import as_user, running

_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
"""Where packages put the server's programs without putting them on the PATH."""

_UNPRIVILEGED = ("postgres", "nobody")


def find_initdb() -> Path | None:
    """The program that makes a database cluster; None where PostgreSQL is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).resolve()
    for place in _PLACES:
        for candidate in sorted(Path("/").glob(f"{place.lstrip('/')}/initdb"), reverse=True):
            return candidate
    return None


@contextmanager
def postgres(initdb: Path) -> Iterator[str]:
    """The SQLAlchemy URL of a new, empty database."""
    # Not in pytest's directory: of that, another user may not enter the parents, and its path is too long for a socket.
    home = Path(tempfile.mkdtemp(prefix="icebench-pg-"))
    try:
        user = _server_user()
        if user is not None:
            os.chown(home, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        data = home / "data"
        command = [str(initdb), "--pgdata", str(data), "--username=icebench", "--auth=trust", "--no-sync"]
        command += ["--encoding=UTF8", "--locale=C"]
        subprocess.run(command, check=True, capture_output=True, cwd=home, **as_user(user))
        server = [str(initdb.with_name("postgres")), "-D", str(data), "-c", f"unix_socket_directories={home}"]
        server += ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60"]
        ready = [str(initdb.with_name("pg_isready")), "--host", str(home), "--quiet"]

        def is_ready() -> bool:
            return subprocess.run(ready, check=False, capture_output=True).returncode == 0

        # SIGINT closes the clients' connections; SIGTERM would wait for them.
        log = home.with_suffix(".log")
        try:
            with running(server, log=log, ready=is_ready, user=user, stop_signal=signal.SIGINT):
                yield f"postgresql+psycopg://icebench@/postgres?host={home}"
        finally:
            log.unlink(missing_ok=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _server_user() -> str | None:
    """Who runs the server; it refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(user for user in _UNPRIVILEGED if user in known)

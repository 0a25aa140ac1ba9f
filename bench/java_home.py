"""Finds a Java that Spark can run on, for machines that have several or whose first one does not do.

Spark 4.1 needs Java 17. Its Hadoop calls `Subject.getSubject`, which throws since Java 24: there a session starts, and
the first Parquet file fails. This module runs before anything is installed (`python -m icebench.bench.java_home` prints
the home), so it uses the standard library only.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from icebench.bench.errors import BenchError

OLDEST = 17
NEWEST = 23
PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "~/.sdkman/candidates/java/*",
)
"""Where packages put Java homes: Linux, macOS, Homebrew on either processor, SDKMAN."""


class JavaMissing(BenchError):
    """No Java of a fitting version was found; the message says what was and how to install one."""


def candidates(environment: Mapping[str, str], places: Iterable[str] = PLACES) -> Iterator[Path]:
    """Java homes to try, best first: JAVA_HOME, the `java` of the PATH, then the known places in order of name."""
    if home := environment.get("JAVA_HOME"):
        yield Path(home)
    if command := shutil.which("java", path=environment.get("PATH")):
        yield Path(command).resolve().parent.parent
    for place in places:
        pattern = Path(place).expanduser()
        # Path.glob wants a relative pattern.
        yield from sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))


def major_version(home: Path) -> int | None:
    """The major version (8, 17, 21) that `bin/java -version` in `home` reports, None where no Java runs."""
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else None


def find_java_home(environment: Mapping[str, str] = os.environ, places: Iterable[str] = PLACES) -> Path:
    """The first candidate whose version is between OLDEST and NEWEST.

    Raises:
        JavaMissing: none is.
    """
    seen: dict[Path, int] = {}
    for home in candidates(environment, places):
        version = major_version(home)
        if version is None:
            continue
        if OLDEST <= version <= NEWEST:
            return home
        seen[home] = version
    found = ", ".join(f"{home} is {version}" for home, version in seen.items()) or "none was found"
    raise JavaMissing(
        f"Java {OLDEST} to {NEWEST} is needed ({found}): 'apt-get install openjdk-17-jre-headless' (Debian, Ubuntu)"
        " or 'brew install openjdk@17' (macOS), or point JAVA_HOME at one."
    )


def use_java_home() -> Path:
    """Points JAVA_HOME at a fitting Java for this process and its children; to call before the first Spark session."""
    home = find_java_home()
    os.environ["JAVA_HOME"] = str(home)
    return home


def main() -> None:
    """Prints the home, or the reason why there is none and exits with 1."""
    try:
        sys.stdout.write(f"{find_java_home()}\n")
    except JavaMissing as missing:
        sys.exit(f"icebench: {missing}")


if __name__ == "__main__":
    main()

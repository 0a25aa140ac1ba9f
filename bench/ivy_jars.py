"""Jars with their dependencies and by classifier, fetched by Ivy, which comes with PySpark.

`icebench.bench.setup_jars` has Spark's own resolver fetch one jar; that takes no classifiers, and keeps the jars of all
packages in one directory.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from icebench.bench.java_home import find_java_home
from icebench.bench.setup_jars import IVY_HOME, JarMissing

_DESCRIPTION = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="icebench" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->master,runtime">{}  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Jars:
    """Jars that are fetched together: what they are for, and Ivy's description of what they depend on."""

    name: str
    dependencies: str

    @property
    def description(self) -> str:
        return _DESCRIPTION.format(self.dependencies)


def fetched(jars: Jars, ivy_home: Path = IVY_HOME) -> list[Path]:
    """The files of `jars`, fetched where they are missing.

    Raises:
        JarMissing: They cannot be fetched.
        JavaMissing: There is no Java to run Ivy with.
    """
    directory = directory_of(jars, ivy_home)
    if not directory.is_dir():
        fetch(jars, ivy_home)
    return sorted(directory.glob("*.jar"))


def fetch(jars: Jars, ivy_home: Path = IVY_HOME) -> None:
    """Have Ivy collect the jars in a directory, which comes to be whole or not at all; raises as `fetched`."""
    target = directory_of(jars, ivy_home)
    ivy_home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ivy_home) as temporary:
        description = Path(temporary, "ivy.xml")
        description.write_text(jars.description)
        collected = Path(temporary, "jars")
        ivy = [str(find_java_home() / "bin" / "java"), "-jar", str(spark_jars("ivy-*.jar")[0]), "-warn"]
        # Its own cache would keep all of them a second time.
        ivy += ["-ivy", str(description), "-cache", str(Path(temporary, "cache"))]
        ivy += ["-retrieve", f"{collected}/[artifact]-[revision](-[classifier]).[ext]"]
        done = subprocess.run(ivy, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not collected.is_dir():
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise JarMissing(f"Ivy could not fetch {jars.name} (exit {done.returncode}): {'; '.join(lines[-2:])}")
        if not target.exists():
            shutil.move(collected, target)


def directory_of(jars: Jars, ivy_home: Path = IVY_HOME) -> Path:
    """Where the jars are, if they were fetched."""
    return ivy_home / f"{jars.name}-{hashlib.sha256(jars.description.encode()).hexdigest()[:12]}"


def spark_jars(pattern: str) -> list[Path]:
    """Jars of PySpark, by name; raises JarMissing where there are none."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarMissing("PySpark is not installed")
    found = sorted(Path(spec.origin).with_name("jars").glob(pattern))
    if not found:
        raise JarMissing(f"PySpark comes without {pattern}")
    return found

"""Hive's own metastore as a child process on the loopback address, from the jars that PySpark comes with.

Its database is Derby. It is Hive 2.3.10, which compares what a writer expects (HIVE-26882).
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from icebench.bench.ivy_jars import spark_jars
from icebench.bench.java_home import find_java_home
from tests.services.processes import free_port, running
from tests.services.quick_spark import JAVA_OPTIONS

_LOCKS = Path(__file__).with_name("hive_locks.sql")


@contextmanager
def hive_metastore(home: Path) -> Iterator[str]:
    """The address of a metastore whose files and databases are in the directory `home`."""
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:{home / 'database'}",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(home / "warehouse"),
        # As Iceberg's documentation asks for: columns are dropped and reordered.
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "hive.async.log.enabled": "false",
    }
    rows = (f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items())
    (home / "hive-site.xml").write_text(f"<configuration>{''.join(rows)}</configuration>")
    port = free_port()
    java = [str(find_java_home() / "bin" / "java"), "-Xmx256m", *JAVA_OPTIONS]
    java += [f"-Djava.io.tmpdir={home}", f"-Dderby.stream.error.file={home / 'derby.log'}"]
    java += ["-Dderby.system.durability=test", "-cp", f"{home}:{spark_jars('hive-metastore-*.jar')[0].parent}/*"]
    script = f"connect 'jdbc:derby:{home / 'database'};create=true';\n{_LOCKS.read_text()}\nexit;\n"
    subprocess.run([*java, "org.apache.derby.tools.ij"], input=script, text=True, capture_output=True, check=True)
    command = [*java, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]

    def ready() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return False
        return True

    with running(command, log=home / "metastore.log", ready=ready):
        yield f"thrift://127.0.0.1:{port}"

"""Reports of scans, for those who ask for them: what was read of which table, a JSON object a line.

Off unless the environment variable ``ICEBENCH_SCAN_REPORTS`` names a file. Several processes may share one: a line is
one write at the file's end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from icebench.engine.storage.failures import translate_errors

VARIABLE = "ICEBENCH_SCAN_REPORTS"


def report_scan(describe: Callable[[], Mapping[str, object]]) -> None:
    """Append what `describe` returns, JSON values by name, to the file of reports, if there is one.

    Raises:
        StorageFailed: The file cannot be written.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return
    line = json.dumps(describe()).encode() + b"\n"
    with translate_errors("write", path):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(file, line)
        finally:
            os.close(file)

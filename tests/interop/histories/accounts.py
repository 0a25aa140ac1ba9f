"""What snapshot summaries say against what manifests hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import icebench


def check_summaries(table: icebench.Table, unaccounted: Collection[str] = ()) -> None:
    """The totals of main's head are those of its files, but for those `unaccounted`; a missing one says nothing."""
    head = table.current_snapshot
    if head is None:
        return
    counts: Counter[str] = Counter()
    for file in table.inspect.files().to_pylist():
        kind = file["content"]
        own = file.get("content_size_in_bytes")
        counts["total-files-size"] += file["file_size_in_bytes"] if own is None else own
        counts["total-data-files" if kind == 0 else "total-delete-files"] += 1
        counts[("total-records", "total-position-deletes", "total-equality-deletes")[kind]] += file["record_count"]
    totals = {name: int(text) for name, text in head.summary.items() if name.startswith("total-")}
    said = {name: total for name, total in totals.items() if name not in unaccounted}
    held = {name: counts[name] for name in said}
    assert said == held, f"the summary says {said}, the files are {held}"

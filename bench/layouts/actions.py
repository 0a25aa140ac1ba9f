"""What upkeep does to a table, by name, and by which columns it arranges rows: as workloads and engines agree on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Action = Literal["binpack", "sort", "zorder", "rewrite_manifests", "expire_snapshots", "remove_orphan_files"]

KEYS: Mapping[str, tuple[str, ...]] = {"sort": ("user_id",), "zorder": ("user_id", "seconds")}
"""Of those that arrange rows."""

"""Maintenance actions by name, and the columns by which they arrange rows; workloads and engines share them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Action = Literal["binpack", "sort", "zorder", "rewrite_manifests", "expire_snapshots", "remove_orphan_files"]

KEYS: Mapping[str, tuple[str, ...]] = {"sort": ("user_id",), "zorder": ("user_id", "seconds")}
"""Of those that arrange rows."""

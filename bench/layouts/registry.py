"""The layouts by name."""

from __future__ import annotations

from bench.layouts.arrival import Arrival
from bench.layouts.by_item import ByItem
from bench.layouts.layout import Layout
from bench.layouts.monthly import Monthly

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (Arrival(), Monthly(), ByItem())}

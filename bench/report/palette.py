"""Colours by role. Charts are drawn with stand-ins, which become CSS variables, so one drawing serves light and dark.

The series colours remain distinct under the common kinds of colour blindness, and every series has its own marker, so
nothing depends on colour alone.
"""

from __future__ import annotations

import re

INK = "#0a0b01"
MUTED = "#0a0b02"
GRID = "#0a0b03"
SURFACE = "#0a0b04"

MARKERS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "//", "..")

_SERIES = tuple(f"#0a0b1{index}" for index in range(len(MARKERS)))
_PARTS = ("#0a0b20", "#0a0b21", "#0a0b22")

_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    SURFACE: "--surface",
    **{stand_in: f"--series-{index}" for index, stand_in in enumerate(_SERIES)},
    **{stand_in: f"--part-{index}" for index, stand_in in enumerate(_PARTS)},
}

LIGHT = {
    "--ink": "#1b1f24",
    "--muted": "#57606a",
    "--grid": "#d8dee4",
    "--surface": "#ffffff",
    "--page": "#f6f8fa",
    "--error": "#b42318",
    "--warning": "#8a5a00",
    "--series-0": "#0072b2",
    "--series-1": "#c2410c",
    "--series-2": "#00805d",
    "--series-3": "#a8327d",
    "--series-4": "#8a6a00",
    "--series-5": "#57606a",
    "--part-0": "#0072b2",
    "--part-1": "#e08a2e",
    "--part-2": "#d8dee4",
}
DARK = {
    "--ink": "#e6edf3",
    "--muted": "#9aa7b4",
    "--grid": "#30363d",
    "--surface": "#161b22",
    "--page": "#0d1117",
    "--error": "#ff8a80",
    "--warning": "#e3b341",
    "--series-0": "#5cb8f2",
    "--series-1": "#ff9a5c",
    "--series-2": "#3fcfa0",
    "--series-3": "#ee9acb",
    "--series-4": "#e3c04a",
    "--series-5": "#aab4be",
    "--part-0": "#3b9fe0",
    "--part-1": "#e0963f",
    "--part-2": "#3a424b",
}


def series_colour(index: int) -> str:
    """The stand-in of a series; they repeat after six."""
    return _SERIES[index % len(_SERIES)]


def marker(index: int) -> str:
    """The marker of a series; they repeat after six."""
    return MARKERS[index % len(MARKERS)]


def part_colour(index: int) -> str:
    """The stand-in of a part of a stacked bar; they repeat after three."""
    return _PARTS[index % len(_PARTS)]


def with_variables(svg: str) -> str:
    """The drawing with every stand-in replaced by its CSS variable."""
    return re.sub(r"#0a0b[0-9a-f]{2}", lambda found: f"var({_VARIABLES[found.group()]})", svg)


def stylesheet(colours: dict[str, str]) -> str:
    """CSS declarations of the variables."""
    return " ".join(f"{name}: {value};" for name, value in colours.items())

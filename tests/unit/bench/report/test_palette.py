from __future__ import annotations

import pytest

from icebench.bench.report.palette import DARK, LIGHT, stylesheet, with_variables

TEXT = ("--ink", "--muted", "--error", "--warning", *(f"--series-{i}" for i in range(6)))


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["--surface", "--page"])
@pytest.mark.parametrize("name", TEXT)
def test_text_can_be_read_on_its_ground(theme: dict[str, str], ground: str, name: str) -> None:
    assert contrast(theme[name], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_parts_of_a_bar_stand_out_from_each_other(theme: dict[str, str]) -> None:
    assert contrast(theme["--part-0"], theme["--part-2"]) >= 3


def test_both_themes_define_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


def test_every_stand_in_becomes_a_variable() -> None:
    assert with_variables("a #0a0b01 b #0a0b15 c #123456") == "a var(--ink) b var(--series-5) c #123456"
    assert stylesheet({"--a": "#fff", "--b": "#000"}) == "--a: #fff; --b: #000;"

"""The colours: the same everywhere, and told apart by every reader."""

from __future__ import annotations

import re
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from tachograph.analyzer.render.figures.figure_style import DARK, LIGHT, SITES
from tachograph.analyzer.render.html.report_page import asset

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB to linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TOGETHER = ("python", "native", "kernel", "wait")
"""Parts that stand side by side in bars and charts."""


def lab(colour: str, deficiency: str) -> NDArray[np.float64]:
    """CIELAB (D65) of a colour as it is seen."""
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(DEFICIENCIES[deficiency]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in xyz / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_neighbours_can_be_told_apart(palette: dict[str, str], deficiency: str) -> None:
    for one, two in combinations(TOGETHER, 2):
        apart = float(np.linalg.norm(lab(palette[one], deficiency) - lab(palette[two], deficiency)))
        assert apart > 15, (one, two, apart)


def test_sites_do_not_look_like_parts_of_the_time() -> None:
    for site, part in product(SITES, ("python", "native", "kernel")):
        assert np.linalg.norm(lab(site, "none") - lab(LIGHT[part], "none")) > 25, (site, part)
    for one, two in combinations(SITES, 2):
        assert np.linalg.norm(lab(one, "none") - lab(two, "none")) > 15, (one, two)


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("start", [":root {", ':root[data-theme="dark"] {', ':root:not([data-theme="light"]) {'])
def test_all_text_can_be_read(start: str) -> None:
    css = asset("page.css")
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", css[css.index(start) :].partition("}")[0]))
    for text in ("ink", "soft", "faint", "focus", "good", "bad"):
        for ground in ("paper", "sheet", "wash"):
            dark, light = sorted((luminance(colours[text]), luminance(colours[ground])))
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (text, ground)


def test_page_and_figures_have_the_same_colours() -> None:
    css = asset("page.css")
    blocks = {
        name: css[css.index(start) :].partition("}")[0]
        for name, start in (
            ("light", ":root {"),
            ("dark", ':root[data-theme="dark"] {'),
            ("auto", ':root:not([data-theme="light"]) {'),
        )
    }
    for name, palette in (("light", LIGHT), ("dark", DARK), ("auto", DARK)):
        found = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", blocks[name]))
        assert {part: found[part] for part in palette} == palette
    printed = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", asset("print.css")))
    assert {part: colour for part, colour in printed.items() if part in LIGHT}.items() <= LIGHT.items()

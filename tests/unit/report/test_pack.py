from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tachograph.analyzer.render.html.pack import STEPS, Packer, number, varints
from unit.report import block


def unpack(packer: Packer, told: dict[str, object]) -> list[list[float]]:
    page = f'<script id="data" type="x">{packer.block({"grid": told})}</script>'
    document, data = block.read_block(page)
    return block.grid(document["grid"], data)


def test_a_grid_comes_back() -> None:
    packer = Packer()
    packer.ids(np.array([5, -1, 100_000]))
    values = np.array([[0, 3.0, 0, -2.0], [0, 0, 0, 0], [1e6, 0, 0, 1]])
    assert unpack(packer, packer.grid(values)) == values.tolist()


def test_every_window_of_a_row_is_exact_to_a_unit() -> None:
    random = np.random.default_rng(7)
    values = random.exponential(1e7, (20, 120)) * (random.random((20, 120)) < 0.5)
    packer = Packer()
    told = packer.grid(values, 1_000.0)
    running = np.cumsum(unpack(packer, told), axis=1)
    assert told["unit"] >= np.cumsum(values, axis=1).max() / STEPS
    assert np.abs(running - np.cumsum(values, axis=1)).max() <= told["unit"] / 2 + 1e-3


def test_varints() -> None:
    values = [0, 1, 127, 128, 16_383, 16_384, (1 << 53) - 1]
    assert block.varints(varints(np.array(values))) == values
    assert varints(np.zeros(0, np.int64)) == b""


@pytest.mark.parametrize(
    ("value", "shown"), [(None, None), (math.nan, None), (math.inf, None), (1.0, 1), (0.1234567, 0.123457)]
)
def test_numbers(value: float | None, shown: float | None) -> None:
    assert json.dumps(number(value)) == json.dumps(shown)

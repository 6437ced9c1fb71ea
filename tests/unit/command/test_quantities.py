"""Sizes and times are typed in one way, wherever that is."""

from __future__ import annotations

import pytest

from tachograph.analyzer.diff.gate import parse_condition
from tachograph.quantities import BYTES, LETTERS, SECONDS, parse_bytes, parse_seconds
from tachograph.recorder.attached.attach import seconds
from tachograph.recorder.command.option_values import parse_threshold
from tachograph.recorder.rotation.rotation_settings import parse_rotate
from tachograph.testing.marks import read_size, read_time

SIZES: dict[str, int] = {**BYTES, **LETTERS}


@pytest.mark.parametrize("unit", SECONDS)
def test_each_unit_of_time_means_the_same_everywhere(unit: str) -> None:
    number = round(86400 / SECONDS[unit])
    for text in (f"{number}{unit}", f" {number} {unit} "):
        values = (seconds(text), parse_rotate(text).seconds, read_time(text), parse_condition(f"wall>{text}").amount)
        assert values == pytest.approx([number * SECONDS[unit]] * 4)


@pytest.mark.parametrize("unit", SIZES)
def test_each_unit_of_size_means_the_same_everywhere(unit: str) -> None:
    size = SIZES[unit]
    number = (1 << 40) // size / 2
    text, expected = f"{number:.1f} {unit}", number * size
    assert (parse_threshold(text), read_size(text)) == (expected, expected)
    assert parse_condition(f"memory.peak>{text}").amount == expected
    if unit in BYTES:
        assert parse_rotate(text).size == expected
    else:  # 10m are minutes
        with pytest.raises(ValueError, match="is neither a time"):
            parse_rotate(text)


def test_sizes_are_exact() -> None:
    assert parse_bytes("999999999999999B") == 999_999_999_999_999
    assert parse_bytes("0.1KB") == 100
    assert parse_bytes("0.3KiB") == 307  # whole bytes
    assert parse_bytes("1k") == 1024


@pytest.mark.parametrize("text", ["", "s", "1", "-1s", "1e3s", "1.s", ".5s", "1 s 2", "\u0661s", "1" * 16 + "s", "1S"])
def test_what_is_no_time(text: str) -> None:
    assert parse_seconds(text) is None
    assert parse_bytes(text) is None


def test_a_number_alone_is_one_where_that_is_said() -> None:
    assert (parse_seconds("1.5", bare=True), parse_bytes("1.5", bare=True)) == (1.5, 1)
    assert (parse_seconds("KB", bare=True), parse_bytes("s", bare=True)) == (None, None)

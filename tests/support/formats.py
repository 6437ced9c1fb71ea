"""How values read: the one table that the formats of Python and those of a page's scripts are held to.

Texts are written out, so that neither side is the judge of the other. A value that lies exactly between two texts takes
the even digit, as Python's formats have it: JavaScript's own would round it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan


@dataclass(frozen=True)
class Format:
    """A format, which is ``name`` in ``report_data/numbers.py`` and ``script`` on a page."""

    name: str
    script: str
    cases: Mapping[tuple[float, ...], str]
    """Texts by arguments."""
    on_pages: Mapping[tuple[float, ...], str]
    """Texts that a page has instead: it has room for a space, or writes a unit otherwise."""


FORMATS = (
    Format(
        "seconds",
        "seconds",
        {
            (nan,): "?",
            (0.0,): "0 s",
            (4e-7,): "0 µs",
            (9.9e-5,): "99 µs",
            (0.000999,): "999 µs",
            (0.00123,): "1.23 ms",
            (0.01225,): "12.2 ms",
            (0.0994,): "99.4 ms",
            (0.0995,): "0.10 s",
            (0.2,): "0.20 s",
            (1.005,): "1.00 s",
            (1.125,): "1.12 s",
            (1.375,): "1.38 s",
            (9.949,): "9.95 s",
            (9.95,): "9.9 s",
            (65.25,): "65.2 s",
            (65.26,): "65.3 s",
            (119.49,): "119.5 s",
            (119.5,): "2 min 00 s",
            (120.5,): "2 min 00 s",
            (121.5,): "2 min 02 s",
            (7_199.4,): "119 min 59 s",
            (7_200.0,): "2 h 00 min",
            (90_061.0,): "25 h 01 min",
        },
        {},
    ),
    Format(
        "percent",
        "percent",
        {
            (nan,): "?",
            (0.0,): "",
            (0.0004,): "",
            (0.0005,): "0.1",
            (0.01249,): "1.2",
            (0.1225,): "12.2",
            (0.5,): "50.0",
            (0.9994,): "99.9",
            (0.9995,): "100",
            (1.0,): "100",
        },
        {},
    ),
    Format(
        "margin",
        "margin",
        {
            (nan, nan): "",
            (0.1, 0.1): "±0.0",
            (0.0, 0.015): "±0.8",
            (0.0, 0.025): "±1.2",
            (0.2, 0.4): "±10",
            (0.0, 0.25): "±12",
        },
        {},
    ),
    Format(
        "size",
        "bytes",
        {
            (0,): "0 bytes",
            (999,): "999 bytes",
            (1_000,): "1 KB",
            (48_250,): "48.2 KB",
            (48_350,): "48.4 KB",
            (999_499,): "999 KB",
            (999_500,): "1 MB",
            (1_234_567,): "1.23 MB",
            (12_000_000_000,): "12 GB",
            (203_000_000_000_000,): "203 TB",
        },
        {(0,): "0 B", (999,): "999 B"},
    ),
    Format(
        "short_count",
        "shortCount",
        {
            (nan,): "?",
            (0,): "0",
            (2.5,): "2",
            (3.5,): "4",
            (812,): "812",
            (9_999,): "9999",
            (12_250,): "12.2k",
            (12_345,): "12.3k",
            (100_500,): "100k",
            (1_260_000,): "1.3M",
            (35e9,): "35.0G",
            (2e15,): "2000T",
        },
        {},
    ),
    Format(
        "short_time",
        "shortTime",
        {
            (nan,): "?",
            (0.0,): "0ns",
            (41e-9,): "41ns",
            (1.26e-6,): "1.3µs",
            (0.25,): "250ms",
            (0.0025,): "2.5ms",
            (3.14,): "3.1s",
            (12.5,): "12s",
        },
        {
            (0.0,): "0 ns",
            (41e-9,): "41 ns",
            (1.26e-6,): "1.3 µs",
            (0.25,): "250 ms",
            (0.0025,): "2.5 ms",
            (3.14,): "3.14 s",
            (12.5,): "12.5 s",
        },
    ),
)

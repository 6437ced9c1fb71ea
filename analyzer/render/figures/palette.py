"""The colours of reports and figures. They stay apart for readers with any common colour blindness; a test looks.

assets/page.css of the HTML report has the same values; a test holds the two together.
"""

from __future__ import annotations

PYTHON = "#2b6cb0"
NATIVE = "#e0801f"
KERNEL = "#5b2a6e"
UNKNOWN = "#8a8f98"
WAIT = "#b9c0c9"
MEMORY = "#14806a"
COPIES = "#b83a62"
GPU = "#8a7500"

LIGHT = {
    "python": PYTHON,
    "native": NATIVE,
    "kernel": KERNEL,
    "unknown": UNKNOWN,
    "wait": WAIT,
    "memory": MEMORY,
    "copies": COPIES,
    "gpu": GPU,
}
DARK = {
    "python": "#5f9fe3",
    "native": "#f0a04b",
    "kernel": "#e0bff5",
    "unknown": "#7d838d",
    "wait": "#4d5561",
    "memory": "#45b89c",
    "copies": "#ee7a9b",
    "gpu": "#d3c14a",
}

INK, SOFT, FAINT, RULE, WASH, PAPER = "#1b1e23", "#515863", "#686f79", "#e3e4e0", "#f3f3ef", "#ffffff"

SITES = ("#14806a", "#a8d5c5", "#0b4237", "#c9a227", "#7fb069", "#d98c9f", "#56b4c9")
"""For allocation sites side by side, in this order; none is the colour of Python, native code or the kernel."""

NAMES = {"python": "Python", "native": "native", "kernel": "kernel", "unknown": "not known", "wait": "waiting"}

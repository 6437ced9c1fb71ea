"""Puts a page together of a template, styles, scripts and values."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

FOLDER = Path(__file__).parent

BOX_TREE_SCRIPTS = (
    "format.js",
    "dom.js",
    "frame.js",
    "data.js",
    "tables.js",
    "syntax.js",
    "stem.js",
    "box_tree.js",
)
"""Of pages with tables and a flame graph of boxes: those of a diff and of a fleet begin with them."""

MAX_BYTES = 10_000_000
"""A page is never larger; it is reduced until it fits."""


def render(template: str, styles: Sequence[str], scripts: Sequence[str], **values: Any) -> str:
    """A template with its style and script, and with the policy that allows these two and nothing else.

    They are made of ``styles`` and ``scripts``, names of our own files (``asset``).
    """
    style = "\n".join(asset(name) for name in styles)
    script = '(() => {\n"use strict";\n' + "\n".join(asset(name) for name in scripts) + "\n})();"
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    # Our own files, and the only text that is not escaped.
    return environment.get_template(template).render(
        policy=policy, style=Markup(style), script=Markup(script), **values
    )


def asset(name: str) -> str:
    """The text of one of our own style sheets or scripts."""
    return (FOLDER / "assets" / name).read_text("utf-8").strip()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

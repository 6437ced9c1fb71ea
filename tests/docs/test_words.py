"""What users read speaks plainly: no banned word, one meaning a word, and prose that fits an editor."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from tachograph.cli import SUBCOMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = ROOT / "docs" / "benchmarks.md"
SOURCES = sorted(path for room in ("src/tachograph", "recorder", "analyzer") for path in (ROOT / room).rglob("*.py"))
BANNED = re.compile(
    r"\b(nobody|somebody|anybody|whoever|came to grief|one too many|mend(s|ed|ing)?|stands? still)\b|<not seen>",
    re.IGNORECASE,
)
PERSONS = re.compile(r"\b(nobody|somebody|anybody|whoever)\b", re.IGNORECASE)
"""Processes and functions are things."""
ROOMS = ("src/tachograph", "recorder", "analyzer", "native", "format-spec", "tools")
CODE = sorted(
    path
    for room in ROOMS
    for ending in ("py", "c", "cpp", "h", "toml", "md", "js")
    for path in (ROOT / room).rglob(f"*.{ending}")
)
WIDEST = 120


def found(text: str) -> list[str]:
    """The banned words in a text."""
    return [match[0] for match in BANNED.finditer(" ".join(text.split()))]


def test_the_words_are_found() -> None:
    assert found("It stands\nstill, and Nobody mends it.") == ["stands still", "Nobody", "mends"]
    assert found("recommended amendments") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    assert found(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", [None, *SUBCOMMANDS])
def test_help(name: str | None) -> None:
    context = click.Context(main)
    command = main if name is None else main.get_command(context, name)
    assert command is not None
    assert found(command.get_help(click.Context(command))) == []


def messages(source: Path) -> list[str]:
    """The literal texts of a module, without its docstrings: messages, labels and headings are among them."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in statements]
    return [node.value for node in texts if isinstance(node.value, str)]


def test_messages() -> None:
    spoken = {f"{path.relative_to(ROOT)}: {text}": found(text) for path in SOURCES for text in messages(path)}
    assert {where: words for where, words in spoken.items() if words} == {}


def test_code() -> None:
    """Comments, docstrings and names as well."""
    texts = {path: path.read_text(encoding="utf-8") for path in CODE}
    assert len(texts) > 300
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if PERSONS.search(text)] == []


def test_prose_is_wrapped() -> None:
    """Tables, code, pictures and what is generated aside."""
    wide = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8") if page != GENERATED else ""
        prose = re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
        wide += [
            f"{page.relative_to(ROOT)}:{number}"
            for number, line in enumerate(prose.splitlines(), 1)
            if len(line) > WIDEST and not line.startswith(("|", "![", "<!--"))
        ]
    assert wide == []

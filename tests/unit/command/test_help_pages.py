"""``tachograph help``: pages of the documentation from the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tachograph.cli import main
from tachograph.help_pages import DOCS, topics

ROOT = Path(__file__).resolve().parents[3]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["help", *arguments], prog_name="tachograph")


def test_without_a_topic_all_are_listed() -> None:
    result = call()
    assert result.exit_code == 0
    listed = set(re.findall(r"^  ([a-z][\w-]+)  ", result.output, re.MULTILINE))
    assert listed == {name for section in topics().values() for name in section}
    pages = {
        page.stem for folder in ("how-to", "reference", "explanation") for page in (ROOT / "docs" / folder).iterdir()
    }
    assert listed == {*pages - {"pictures"}, "tutorial", "glossary"}


def test_a_topic_is_one_page() -> None:
    names = [name for section in topics().values() for name in section]
    assert len(set(names)) == len(names)
    assert call("suggestions").output == (ROOT / "docs" / "how-to" / "suggestions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("topic", "line"),
    [
        ("sugestions", "no such topic: sugestions (did you mean suggestions?); 'tachograph help' lists them"),
        ("record", "no such topic: record (did you mean 'tachograph record --help'?); 'tachograph help' lists them"),
        ("../cli", "no such topic: ../cli; 'tachograph help' lists them"),
    ],
)
def test_an_unknown_topic_is_one_line(topic: str, line: str) -> None:
    result = call(topic)
    assert (result.exit_code, result.output) == (2, f"tachograph: {line}\n")


def test_what_users_read_names_topics_that_exist() -> None:
    """No docs/ path in advice, which an installation does not have under that name."""
    losses = (ROOT / "format-spec" / "tables.toml").read_text(encoding="utf-8")
    assert re.findall(r'^advice = ".*docs/', losses, re.MULTILINE) == []
    named = set(re.findall(r"tachograph help ([a-z][a-z-]+)", losses))
    for folder in ("analyzer", "recorder"):
        for source in (ROOT / folder).rglob("*.py"):
            named |= set(re.findall(r"tachograph help ([a-z][a-z-]+)", source.read_text(encoding="utf-8")))
    assert named
    assert named <= {name for section in topics(DOCS).values() for name in section}

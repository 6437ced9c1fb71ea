"""The tests that tests/README.md names are there."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS / "README.md"
NAMED = re.compile(r"`([\w/]+\.(?:py|cpp))::(\w+)`")


def test_the_tests_that_it_names_are_there() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 40
    missing = [f"{file}::{name}" for file, name in named if not has(TESTS / file, name)]
    assert missing == []


def has(file: Path, name: str) -> bool:
    """Whether a file of tests has one of this name."""
    if not file.exists():
        return False
    text = file.read_text(encoding="utf-8")
    return f"def {name}(" in text or f"TEST({name})" in text

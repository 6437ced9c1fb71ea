"""CONTRIBUTING.md names files, folders and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOP = {each.name for each in ROOT.iterdir() if each.is_dir()}
FILE = re.compile(r"[\w./-]+\.(py|pyi|c|h|cpp|js|json|md|toml|yaml)")


def paths(text: str) -> list[str]:
    """What is quoted and looks like a path of the repository: it begins with a folder, or ends like a file."""
    quoted = [each for each in re.findall(r"`([^`\s]+)`", text) if not each.startswith("/")]
    return [each for each in quoted if FILE.fullmatch(each) or ("/" in each and each.split("/")[0] in TOP)]


def test_paths_are_recognised() -> None:
    text = "`recorder/none/` `missing.py` `src/x` and `.[dev]`, `make lint`, `and/or`, `/usr/lib/x.py`, `-C a.b=C`"
    assert paths(text) == ["recorder/none/", "missing.py", "src/x"]


def test_paths_exist() -> None:
    named = paths(TEXT)
    assert len(named) > 50
    assert [each for each in named if not (ROOT / each).exists()] == []


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z]+(?:-[a-z]+)*)", TEXT))))
def test_commands_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), target


def test_names_beside_paths_are_in_them() -> None:
    """``NAME`` in ``path`` and ``NAME`` (``path``): the name is in the file."""
    pairs = re.findall(r"`(\w+)`(?: in| of| \() ?`([\w./-]+\.\w+)`", TEXT)
    assert len(pairs) > 5
    assert [pair for pair in pairs if pair[0] not in (ROOT / pair[1]).read_text(encoding="utf-8")] == []

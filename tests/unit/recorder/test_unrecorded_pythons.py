"""Pythons that cannot be recorded are counted by their reason, unless they were not to be recorded."""

import os
from pathlib import Path
from typing import Any

import pytest

from tachograph.recorder.collect.unrecorded_pythons import (
    NEWEST,
    OLDEST,
    losses_of,
    version_of,
    why_unrecorded,
    words_for,
)

OTHER, FROZEN = "pythons_of_other_versions", "applications_frozen"


@pytest.fixture
def frozen(tmp_path: Path) -> str:
    """As PyInstaller makes them: the bootloader, what was packed, and a cookie that says where that begins."""
    path = tmp_path / "app"
    path.write_bytes(b"\x7fELF" + bytes(200_000) + b"MEI\014\013\012\013\016" + bytes(80))
    return str(path)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/usr/bin/python3.8", OTHER),
        ("/usr/bin/python2.7", OTHER),
        (f"/usr/bin/python3.{OLDEST[1]}", None),
        (f"/usr/bin/python3.{NEWEST[1]}", None),
        (f"/usr/bin/python3.{NEWEST[1] + 1}", OTHER),
        ("/usr/bin/python3.8-config", None),
        ("/bin/sh", None),
        ("/missing", None),
        ("a\0b", None),
    ],
)
def test_reasons(name: str, why: str | None) -> None:
    assert why_unrecorded(name) == why
    assert (words_for(why) is None) == (why is None)


def test_the_python_of_an_environment_is_what_it_links_to(tmp_path: Path) -> None:
    (tmp_path / "python3.8").touch()
    (tmp_path / "python").symlink_to("python3")
    (tmp_path / "python3").symlink_to("python3.8")
    assert version_of(str(tmp_path / "python")) == (3, 8)


def test_frozen_applications(tmp_path: Path, frozen: str) -> None:
    assert why_unrecorded(frozen) == FROZEN
    os.mkfifo(tmp_path / "pipe")
    assert why_unrecorded(str(tmp_path / "pipe")) is None
    assert why_unrecorded(str(tmp_path)) is None


def test_only_those_count_that_were_to_be_recorded(frozen: str) -> None:
    def row(executable: str | None, recorded: str = "listed", parent: int | None = 0) -> dict[str, Any]:
        command = None if executable is None else f"{executable} work.py"
        return {"executable": executable, "recorded": recorded, "parent": parent, "command": command}

    rows = [row("/bin/python3.8"), row("/bin/python3.8"), row(frozen, parent=None), row("/bin/sh"), row(None)]
    rows.append(row("/bin/python3.8", "python"))
    assert losses_of(rows, {}) == {OTHER: 2, FROZEN: 1}
    assert losses_of(rows, {"children": False}) == {FROZEN: 1}
    assert losses_of(rows, {"exclude": ["python3.8"]}) == {FROZEN: 1}
    assert losses_of(rows, {"include": ["work"]}) == {OTHER: 2, FROZEN: 1}
    assert losses_of(rows, {"include": ["gunicorn"]}) == {}

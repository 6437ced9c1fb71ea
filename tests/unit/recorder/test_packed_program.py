"""What a program in one file runs is in its description."""

import json
import zipfile
from pathlib import Path

import pytest

from tachograph.recorder.command.packed_program import entry_package


def packed(path: Path, name: str, description: object, before: bytes = b"#!/usr/bin/env python3\n") -> str:
    path.write_bytes(before)
    with zipfile.ZipFile(path, "a") as made:
        made.writestr("__main__.py", "")
        made.writestr(name, description if isinstance(description, str) else json.dumps(description))
    return path.name


@pytest.mark.parametrize("name", ["environment.json", "PEX-INFO"])
def test_shiv_and_pex_say_what_they_run(tmp_path: Path, name: str) -> None:
    app = packed(tmp_path / "app.pyz", name, {"entry_point": "tool.cli.main:main"})
    for command in ([app], [f"./{app}", "--fast"], ["/usr/bin/python3.13", "-I", app, "input"], [f"{tmp_path}/{app}"]):
        assert entry_package(command, tmp_path) == "tool"
    for command in ([], ["-m", "tool", app], ["work.py", app], ["python", "-c", "pass"], ["missing.pyz"]):
        assert entry_package(command, tmp_path) is None


@pytest.mark.parametrize(
    "description",
    ["", "[]", "{", '{"entry_point": null}', '{"entry_point": 3}', '{"entry_point": "../etc"}', "[" * 100_000, "{}"],
)
def test_descriptions_that_make_no_sense(tmp_path: Path, description: str) -> None:
    assert entry_package([packed(tmp_path / "app.pyz", "PEX-INFO", description)], tmp_path) is None


def test_other_archives_are_not_asked(tmp_path: Path) -> None:
    described = {"entry_point": "tool:main"}
    assert entry_package([packed(tmp_path / "a", "PEX-INFO", described, b"#!/bin/sh\n")], tmp_path) is None
    assert entry_package([packed(tmp_path / "b", "data.json", described)], tmp_path) is None

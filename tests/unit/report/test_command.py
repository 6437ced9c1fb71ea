"""`tachograph analyze --html` and `--figures` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from browser import story
from tachograph.analyzer.commands.analyze import analyze


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(story.build(tmp_path_factory.mktemp("story") / "story.tacho"))


@pytest.mark.broad
def test_page_figures_and_json_from_one_command(recording: str, tmp_path: Path) -> None:
    page, figures, document = tmp_path / "report.html", tmp_path / "figures", tmp_path / "profile.json"
    arguments = [recording, "--html", str(page), "--figures", str(figures), "--json", str(document)]
    result = CliRunner().invoke(analyze, arguments)
    assert result.exit_code == 0, result.output
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert (figures / "lines.svg").is_file()
    assert json.loads(document.read_text("utf-8"))["tachograph"]["document"] == "profile"
    assert "report.html" in result.stderr
    assert result.stdout == ""
    # Source text, command lines and names are in all of them.
    assert {path.stat().st_mode & 0o077 for path in (page, document)} == {0}


@pytest.mark.parametrize("option", ["--html", "--figures"])
def test_what_cannot_be_written_is_one_line(recording: str, tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(analyze, [recording, option, str(tmp_path / "file" / "inside")])
    assert result.exit_code == 2
    assert result.stderr.startswith("tachograph: cannot write ")
    assert result.stderr.count("\n") == 1


def test_a_window_and_a_thread_are_those_of_the_page(recording: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = CliRunner().invoke(analyze, [recording, "--html", str(page), "--from", "6", "--thread", "main"])
    assert result.exit_code == 0, result.output
    text = page.read_text("utf-8")
    assert "only thread main" in text
    assert "<b>3.00 s</b>" in text  # CPU after the sixth second

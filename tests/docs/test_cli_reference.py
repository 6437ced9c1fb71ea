"""docs/reference/cli.md names the options that the commands have, all of them and no others."""

import re
from pathlib import Path

import click
import pytest

from tachograph.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


def documented(command: str) -> set[str]:
    """Every long option in a command's section of the page."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.startswith(f"`tachograph {command}")]
    rows = "\n".join(line.split("|")[1] for line in section.replace("\\|", "/").splitlines() if line.startswith("|"))
    return set(re.findall(r"--[a-z][a-z-]+", rows)) - {"--help"}


def existing(command: str) -> set[str]:
    """Every long option that a command takes."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    commands = found.commands.values() if isinstance(found, click.Group) else [found]
    options = [each for one in commands for each in one.params if isinstance(each, click.Option)]
    names = [name for option in options for name in (*option.opts, *option.secondary_opts)]
    return {name for name in names if name.startswith("--")} - {"--help"}


@pytest.mark.parametrize("command", ["record", "analyze", "info", "recover", "diff", "export", "fleet", "scrub"])
def test_page_and_command_agree(command: str) -> None:
    assert documented(command) == existing(command)

"""docs/reference/cli.md names the options that the commands have, all of them and no others."""

import re
from pathlib import Path

import click
import pytest

from tachograph.analyzer.recording.question_options import ExportFormat
from tachograph.cli import SUBCOMMANDS, main
from tachograph.grouped_help import GroupedCommand

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


def documented(command: str) -> set[str]:
    """Every long option in a command's section of the page."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.startswith(f"`tachograph {command}")]
    rows = "\n".join(line.split("|")[1] for line in section.replace("\\|", "/").splitlines() if line.startswith("|"))
    return set(re.findall(r"--[a-z][a-z-]+", rows)) - {"--help"}


def options(command: str) -> list[click.Option]:
    """Every option of a command, and of the commands below it."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    commands = found.commands.values() if isinstance(found, click.Group) else [found]
    return [each for one in commands for each in one.params if isinstance(each, click.Option)]


def existing(command: str) -> set[str]:
    """Every long option that a command takes."""
    names = [name for option in options(command) for name in (*option.opts, *option.secondary_opts)]
    return {name for name in names if name.startswith("--")} - {"--help"}


def test_every_format_has_its_row() -> None:
    page = PAGE.parents[1] / "how-to" / "export-to-other-tools.md"
    rows = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [*map(str, ExportFormat)]


COMMANDS = [*SUBCOMMANDS]
EVERYDAY = ("record", "analyze", "attach", "compare", "diff", "export")
SCREEN = (50, 80)
"""Lines and columns that the help of an everyday command may take."""


@pytest.mark.parametrize("command", COMMANDS)
def test_page_and_command_agree(command: str) -> None:
    assert documented(command) == existing(command)


def unnamed(command: str) -> list[str]:
    """The choices of options that the page does not name in the option's row."""
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
    found = []
    for option in options(command):
        if isinstance(option.type, click.Choice):
            text = " ".join(row for row in rows if re.search(rf"{option.opts[-1]}[ `]", row))
            found += [
                f"{option.opts[-1]} {each}" for each in option.type.choices if not re.search(rf"\b{each}\b", text)
            ]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_every_choice(command: str) -> None:
    assert unnamed(command) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_what_a_value_is(command: str) -> None:
    """No word of click's own, such as TEXT and INTEGER RANGE, and no line in a list of commands that is cut off."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    for one in [found, *(found.commands.values() if isinstance(found, click.Group) else [])]:
        text = one.get_help(click.Context(one))
        assert re.findall(r"^  -.*(?:TEXT|INTEGER|FLOAT).*$|^.*[a-z]\.\.\.$", text, re.MULTILINE) == []


@pytest.mark.parametrize("command", EVERYDAY)
def test_help_fits_one_screen_and_lacks_only_options_for_research(command: str) -> None:
    found = main.get_command(click.Context(main), command)
    assert isinstance(found, GroupedCommand)
    context = click.Context(found, click.Context(main, info_name="tachograph"), command)
    lines = found.get_help(context).splitlines()
    assert len(lines) <= SCREEN[0]
    assert [line for line in lines if len(line) > SCREEN[1]] == []
    for option in options(command):
        rows = [line for line in lines if re.search(rf"^  .*{re.escape(option.opts[-1].lstrip('-'))}\b.*  ", line)]
        if option.hidden:
            assert rows == [], f"{option.opts} is for the reference"
        else:
            assert option.help
            assert [line for line in rows if line.endswith(option.help)], f"{option.opts} has no line of its own"


def test_options_for_research() -> None:
    """They are accepted, and the reference has them (test_page_and_command_agree)."""
    hidden = {command: {each.opts[-1] for each in options(command) if each.hidden} for command in EVERYDAY}
    assert hidden == {
        "record": {"--calls-choice", "--calls-top", "--calls-period", "--accesses"},
        "analyze": {"--attribution", "--pool-attribution"},
        "attach": set(),
        "compare": set(),
        "diff": {"--attribution"},
        "export": set(),
    }

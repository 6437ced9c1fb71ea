"""``tachograph help TOPIC``: prints a page of the documentation, which is installed with the package."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import click

DOCS = Path(__file__).parent / "docs"
"""A link to docs/ in the repository, a folder with its pages for users in an installation."""
SECTIONS = {
    "Start here": ("tutorial.md", "glossary.md"),
    "How to": ("how-to/*.md",),
    "Reference": ("reference/*.md",),
    "Explanation": ("explanation/*.md",),
}


def topics(docs: Path = DOCS) -> Mapping[str, Mapping[str, Path]]:
    """The pages by section and topic; a topic is the name of a page's file."""
    return {
        title: {page.stem: page for pattern in patterns for page in sorted(docs.glob(pattern))}
        for title, patterns in SECTIONS.items()
    }


EXAMPLES = """\b
Examples:
  tachograph help
  tachograph help suggestions
"""


@click.command("help", context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXAMPLES)
@click.argument("topic", required=False)
@click.pass_context
def help_command(context: click.Context, topic: str | None) -> None:
    """Print a page of the documentation, or without TOPIC the list of topics."""
    sections = topics()
    pages = {name: page for section in sections.values() for name, page in section.items()}
    if topic is None:
        formatter = context.make_formatter()
        for title, section in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, _title(page)) for name, page in section.items()])
        click.echo(formatter.getvalue().strip("\n"))
    elif topic in pages:
        click.echo(_text(pages[topic]), nl=False)
    else:
        meant = _suggestion(context, topic, list(pages))
        raise click.ClickException(f"no such topic: {topic}{meant}; 'tachograph help' lists them")


def _suggestion(context: click.Context, topic: str, names: list[str]) -> str:
    commands = context.parent.command if context.parent is not None else None
    if isinstance(commands, click.Group) and topic in commands.list_commands(context):
        return f" (did you mean 'tachograph {topic} --help'?)"
    close = get_close_matches(topic, names, n=1, cutoff=0.7)
    return f" (did you mean {close[0]}?)" if close else ""


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _title(page: Path) -> str:
    return _text(page).partition("\n")[0].lstrip("# ")

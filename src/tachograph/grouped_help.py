"""``--help`` by groups: one line per option. Hidden options, those for research, are left to docs/reference/cli.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


class GroupedOption(click.Option):
    """An option with its group; ``shown`` stands for its names in help, where not all of them are useful there."""

    def __init__(self, *names: Any, group: str, shown: str | None = None, **rest: Any) -> None:
        super().__init__(*names, **rest)
        self.group = group
        self.shown = shown

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The two columns of help: names, and the text as it stands, without what click would append to it."""
        columns = super().get_help_record(ctx)
        return None if columns is None else (self.shown or columns[0], self.help or "")


class GroupedCommand(click.Command):
    """A command whose help lists its options by groups, in the order in which the groups first occur."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section per group, the descriptions of all sections in one column."""
        groups = self.groups(ctx)
        width = max(len(names) for rows in groups.values() for names, _ in rows)
        for name, rows in groups.items():
            with formatter.section(name):
                formatter.write_dl([(names.ljust(width), text) for names, text in rows])

    def groups(self, ctx: click.Context) -> Mapping[str, list[tuple[str, str]]]:
        """The two columns of each option, by group. ``--help`` itself has none."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in self.params:
            columns = option.get_help_record(ctx)
            if columns is not None and isinstance(option, GroupedOption):
                groups.setdefault(option.group, []).append(columns)
        return groups

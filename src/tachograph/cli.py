"""The ``tachograph`` command: the only place that knows both the recorder and the analyzer.

Each subcommand is imported when it is used and no sooner, so that ``record`` starts its program without waiting for
pyarrow.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from tachograph import __version__, project
from tachograph.recorder.problems import Refused, one_line

# Subcommand -> (module that has it, name there, its line in --help). The line is here so that --help imports
# nothing.
SUBCOMMANDS = {
    "record": ("tachograph.recorder.command.record_command", "record", "Run a Python program and record it."),
    "attach": ("tachograph.recorder.attached.attach", "attach_command", "Record a program that runs already."),
    "standby": (
        "tachograph.recorder.attached.standby_command",
        "standby_command",
        "Run a program that can be attached to.",
    ),
    "ps": ("tachograph.recorder.attached.ps", "ps_command", "List the Python processes that can be attached to."),
    "dump": ("tachograph.recorder.attached.dump", "dump_command", "Show what a process is doing now."),
    "recover": (
        "tachograph.recorder.command.recover",
        "recover",
        "Finish a recording that a crash left unfinished.",
    ),
    "analyze": ("tachograph.analyzer.commands.analyze", "analyze", "Show where a recorded program spent its time."),
    "view": ("tachograph.analyzer.commands.view", "view", "Open recordings in the browser."),
    "info": ("tachograph.analyzer.commands.info", "info", "Show what is in a recording."),
    "diff": ("tachograph.analyzer.commands.diff", "diff", "Show what changed between recordings, or groups."),
    "compare": ("tachograph.analyzer.commands.compare", "compare", "Run two programs in turns: which is slower?"),
    "history": ("tachograph.analyzer.commands.history", "history", "Show when time or memory changed, and where."),
    "export": ("tachograph.analyzer.commands.export", "export", "Write a recording in the format of another tool."),
    "fleet": ("tachograph.analyzer.commands.fleet", "fleet", "Answer questions about thousands of recordings."),
    "mcp": ("tachograph.analyzer.commands.mcp", "mcp", "Let an assistant read recordings (an MCP server)."),
    "lsp": ("tachograph.analyzer.commands.mcp", "lsp", "Show figures beside the code (a language server)."),
    "upload": ("tachograph.recorder.command.upload", "upload", "Send recordings to a store, such as s3://bucket/shop."),
    "scrub": ("tachograph.analyzer.commands.export", "scrub", "Write a copy of a recording that can be handed on."),
    "help": ("tachograph.help_pages", "help_command", "Print a page of the documentation."),
}


EXAMPLES = """\b
Examples:
  tachograph record work.py                        writes work-001.tacho
  tachograph analyze                               where its time went
  tachograph analyze --memory                      who held its memory
  tachograph view                                  the same in the browser
  tachograph diff work-001.tacho work-002.tacho
"""


MEANT = {
    "analyse": "analyze",
    "report": "analyze",
    "show": "analyze",
    "html": "view",
    "open": "view",
    "run": "record",
    "profile": "record",
    "bench": "compare",
    "benchmark": "compare",
    "hyperfine": "compare",
    "convert": "export",
    "repair": "recover",
    "anonymize": "scrub",
}
"""Names that other tools have for our subcommands."""


class LazyGroup(click.Group):
    """A click group whose subcommands are imported on use, and whose refusals are one line each."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run the command; bad input ends it with one line on the standard error and exit status 2."""
        try:
            status = super().main(args, *rest, **{**options, "standalone_mode": False})
        except click.ClickException as error:
            click.echo(f"tachograph: {refusal(error)}", err=True)
            sys.exit(2)
        except Refused as error:
            click.echo(f"tachograph: {one_line(error.message)}", err=True)
            sys.exit(2)
        except click.Abort:
            sys.exit(130)
        except BrokenPipeError:
            # The reader of our output (a pager, head) has gone; python would complain once more when it flushes.
            sys.stdout = None
            sys.exit(141)
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; an option without its value does not know whose it is."""
        try:
            return super().invoke(ctx)
        except click.BadOptionUsage as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            if error.ctx is None and command is not None:
                error.ctx = click.Context(command, ctx, ctx.invoked_subcommand)
            raise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand of a command line; an unknown one gets a suggestion."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in SUBCOMMANDS:
            raise click.UsageError(no_such_command(name), ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All subcommands, in the order in which one uses them."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand, imported now."""
        if cmd_name not in SUBCOMMANDS:
            return None
        module, name, _ = SUBCOMMANDS[cmd_name]
        try:
            command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise click.UsageError(missing_dependency(cmd_name, error.name or "a module")) from None
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of subcommands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in SUBCOMMANDS.items()])


def no_such_command(name: str) -> str:
    """The line for a subcommand that there is not, with the one that was probably meant."""
    from difflib import get_close_matches  # only mistakes wait for it

    meant = MEANT.get(name.lower()) or next(iter(get_close_matches(name.lower(), SUBCOMMANDS, 1, 0.6)), None)
    if meant is None and (name.endswith(".py") or os.path.sep in name):
        return f"no such command {name!r}: did you mean 'tachograph record {name}'?"
    return f"no such command {name!r}" + (f": did you mean {meant!r}?" if meant else "")


def refusal(error: click.ClickException) -> str:
    """The line for bad input, without line breaks, and with the way to help where the command line itself was wrong."""
    text = " ".join(error.format_message().split()).rstrip(".")
    if (path := _project_of(error)) is not None:
        return f"{path}: [tool.tachograph]: {text[:1].lower()}{text[1:]}"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text = f"{text[:1].lower()}{text[1:]}"
        return f"{_swallowed(error.ctx) or text + _wanted(error)}; see '{error.ctx.command_path} --help'"
    return text


def _swallowed(ctx: click.Context) -> str | None:
    """The line for an option that was left without its value and took the next option for it; None if there is none."""
    options = [param for param in ctx.command.params if isinstance(param, click.Option)]
    names = {name for option in options for name in option.opts if name.startswith("--")}
    for option in options:
        value = ctx.params.get(option.name or "")
        if isinstance(value, str) and value in names:
            return f"option {option.opts[0]!r} took {value!r} for its {option.metavar or 'value'}"
    return None


def _wanted(error: click.UsageError) -> str:
    """The value that the option lacks."""
    if not isinstance(error, click.BadOptionUsage) or error.ctx is None:
        return ""
    metavars = (param.metavar for param in error.ctx.command.params if error.option_name in param.opts)
    metavar = next(metavars, None)
    return f" ({metavar})" if metavar else ""


def _project_of(error: click.ClickException) -> str | None:
    """The pyproject.toml that a bad value comes from; None if it was typed."""
    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return None
    name = error.param.name or ""
    project_file = project.candidate() if error.ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP else None
    return None if project_file is None else project_file[0]


def missing_dependency(command: str, module: str) -> str:
    """One line that says what to install when ``command`` cannot import ``module``."""
    recording = SUBCOMMANDS[command][0].startswith("tachograph.recorder.")
    package = "tachograph" if recording else "tachograph[analyze]"
    return f"'tachograph {command}' needs {module}, which is not installed here; type: pip install '{package}'"


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
@click.version_option(__version__, prog_name="tachograph")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Record a Python program where it runs; read the recording anywhere else, as often as wanted."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    elif any(ctx.invoked_subcommand in commands for _, _, commands in project.KEYS.values()):
        ctx.default_map = {**project.defaults(project.candidate()), "record": project.record_values()}

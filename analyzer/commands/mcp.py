"""``tachograph mcp``: recordings for an assistant, over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from .common import Failure, one_line_errors

NEEDED = ("mcp", "mcp_types", "pydantic", "anyio", "duckdb")


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph mcp                                    the recordings in this folder\n"
    "  tachograph mcp /home/me/recordings before.tacho",
    help="Let an assistant read recordings: a server of the Model Context Protocol on standard input and output.\n\n"
    "PLACE is a recording, or a folder with recordings at any depth (default: this folder). The assistant can list"
    " them, summarize, show lines, functions, call paths and memory, compare two, and ask their tables; it can change"
    " nothing, and read no other file.",
)
@click.argument("places", nargs=-1, metavar="[PLACE...]", type=click.Path())
@one_line_errors
def mcp(places: tuple[str, ...]) -> None:
    """Serves until the assistant closes the standard input."""
    from .shelf import Shelf

    shelf = Shelf([Path(place).absolute() for place in places or (".",)])
    try:
        import duckdb  # noqa: F401  # asked for now, not with the first query

        from .assistant.server import Answers, serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDED:
            raise
        missing = "mcp 2.0 or later" if error.name.startswith("mcp.") else error.name
        raise Failure(f"'tachograph mcp' needs {missing}: pip install 'tachograph[mcp]'") from None
    serve(Answers(shelf)).run("stdio")

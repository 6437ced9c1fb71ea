"""``tachograph analyze --tree`` and ``--line``: who called whom, and what a line spends its time in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..profile.profile import Profile


def tell_calls(profile: Profile, line: str | None, json: str | None, console: Console, top: int | None) -> None:
    """Shows the calls of a line ``FILE:N``, or of the program, in the terminal or as JSON (a file, or ``-``).

    Errors:
        FormatError: there is no such line, or the file cannot be written.
    """
    from ..profile.call_branches import call_tree, line_calls

    if json is not None:
        from ..recording.output_file import write_text
        from ..render.json_calls import line_document, tree_document
        from ..render.json_document import pieces

        found = (
            tree_document(profile, call_tree(profile))
            if line is None
            else line_document(profile, line_calls(profile, line))
        )
        write_text(pieces(found), json)
        return
    from ..render.terminal.calls import show_line, show_tree

    if line is None:
        show_tree(profile, call_tree(profile), console, top)
    else:
        show_line(profile, line_calls(profile, line), console, top)

"""Reports in the output of a cell, made in a process of their own.

So what the analyzer needs (pandas and more) is not in the session's process, whose memory and modules stay what the
user's own code makes of them; and an interrupt ends it. The page is shown in an iframe, with the text for frontends
that show none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from tachograph.recorder.attached.own_interpreter import own_interpreter
from tachograph.recorder.problems import RecordingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tachograph.analyzer.profile.profile import Profile


WIDTH = 110
"""Characters of a line of the text; what a cell's output has room for."""

RUNS = "from tachograph.notebook.reading import main; main()"


class Shown(NamedTuple):
    """A report: the page, and the same as text."""

    page: str
    text: str


class UnreadError(Exception):
    """A recording could not be read; the message is one line."""


def read(paths: Sequence[Path], title: str, **options: Any) -> Shown:
    """The report of a recording under a title, or the difference of two.

    ``options`` are, of a difference, ``anyway`` and ``shares`` (docs/reference/cli.md).

    Errors:
        UnreadError: it cannot be made.
    """
    request = {
        "paths": list(map(os.fspath, paths)),
        "title": title,
        "modules": list(map(os.path.abspath, sys.path)),
        "options": options,
    }
    try:
        python = own_interpreter()  # a session may run in an application that embeds Python
    except RecordingError as error:
        raise UnreadError(str(error)) from None
    done = subprocess.run(
        [python, "-P", "-c", "import sys, json; sys.path += [place for place in json.loads(sys.argv[1])"
         f"['modules'] if place not in sys.path]; {RUNS}", json.dumps(request)],
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
        env={key: value for key, value in os.environ.items() if not key.startswith("TACHOGRAPH_")},
        start_new_session=True,  # an interrupt of the session is not its own
    )  # fmt: skip
    if done.returncode == 0:
        return Shown(**json.loads(done.stdout))
    errors = done.stderr.decode("utf-8", "replace")
    lines = errors.strip().splitlines() or [f"the reader ended with {done.returncode}"]
    raise UnreadError(lines[-1])


def main() -> None:
    """Read what ``sys.argv[1]`` names, and write the report to the standard output; errors are one line."""
    from tachograph.format import FormatError

    request = json.loads(sys.argv[1])
    try:
        shown = _report(request) if len(request["paths"]) == 1 else _difference(request)
    except FormatError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(2)
    json.dump(shown._asdict(), sys.stdout)


def _report(wanted: dict[str, Any]) -> Shown:
    from tachograph.analyzer.profile.question import Question
    from tachograph.analyzer.recording.opened import Recording
    from tachograph.analyzer.render.html.report_page import report
    from tachograph.analyzer.render.terminal.report import show
    from tachograph.analyzer.report_data.report_data import build_report_data, build_views

    with Recording(wanted["paths"][0]) as recording:
        question = Question()
        data = build_report_data(recording, question)
        data = replace(data, profile=_under(data.profile, wanted["title"]))
        page = report(data, views=build_views(recording, question, data))
        text, console = _console()
        show(data.profile, console)
    return Shown(page, text.getvalue())


def _difference(wanted: dict[str, Any]) -> Shown:
    from tachograph.analyzer.diff.comparison import diff
    from tachograph.analyzer.profile.question import Question
    from tachograph.analyzer.render.html.diff_page import page
    from tachograph.analyzer.render.terminal.diff_lines import show

    base, new = map(Path, wanted["paths"])
    result = diff([base], [new], Question(), **wanted["options"])
    compared = [replace(run, profile=_under(run.profile, wanted["title"])) for run in result.new]
    result = replace(result, new=compared)
    text, console = _console()
    show(result, console)
    return Shown(page(result), text.getvalue())


def _under(profile: Profile, title: str) -> Profile:
    """The profile under a title in place of the program's command line, which of a kernel says nothing to its user."""
    return replace(profile, metadata=replace(profile.metadata, program=title))


def _console() -> tuple[StringIO, Console]:
    from rich.console import Console

    text = StringIO()
    return text, Console(file=text, width=WIDTH, highlight=False, markup=False, emoji=False, color_system=None)


HEIGHT = 720
"""CSS pixels; the frame can be drawn larger."""

_FRAME = """\
<div style="resize: vertical; overflow: hidden; height: {height}px; min-height: 160px; border: 1px solid #8884;\
 border-radius: 4px;">
<iframe id="{name}" title="{title}" sandbox="allow-scripts allow-popups" referrerpolicy="no-referrer"\
 style="width: 100%; height: 100%; border: 0; display: block;" srcdoc="{page}"></iframe>
</div>
<script>{script}</script>
<details><summary>{title}, as text</summary><pre style="line-height: 1.2; overflow-x: auto;">{text}</pre></details>
"""

# The page is in a sandbox and cannot see whether the notebook is light or dark: it is told, also when that changes.
# Notebooks have no common way to say it; the colour behind the frame is what all of them have.
_SCRIPT = """
(() => {
  const frame = document.getElementById("%s");
  if (!frame) return;
  const tell = () => {
    let box = frame, colour = null;
    while ((box = box.parentElement)) {
      const parts = (getComputedStyle(box).backgroundColor.match(/[\\d.]+/g) || []).map(Number);
      if (parts.length > 2 && (parts.length < 4 || parts[3] > 0.5)) { colour = parts; break; }
    }
    const dark = colour && 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] < 128;
    frame.contentWindow?.postMessage({ tachographTheme: dark ? "dark" : "light" }, "*");
  };
  frame.addEventListener("load", tell);
  tell();
  new MutationObserver((_, observer) => {
    if (!frame.isConnected) return observer.disconnect();
    tell();
    setTimeout(tell, 600);
  }).observe(document.body, { attributes: true });
})();
"""


def bundle(shown: Shown, title: str) -> dict[str, str]:
    """The report by MIME type. A frontend takes the richest that it has; the sandbox keeps the page to itself."""
    name = f"tachograph-{uuid4().hex}"
    html = _FRAME.format(
        name=name,
        height=HEIGHT,
        title=escape(f"tachograph: {title}"),
        page=escape(shown.page, quote=True),
        script=_SCRIPT % name,
        text=escape(shown.text),
    )
    return {"text/html": html, "text/plain": shown.text}

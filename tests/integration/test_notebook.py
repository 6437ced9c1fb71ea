"""The magics of notebooks, in a real kernel: what is shown, what is kept, what is left, and what is refused."""

import json
import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from integration import support

pytest.importorskip("ipykernel")
from integration.notebook import Kernel, Output, beside, kernel

pytestmark = [pytest.mark.native, pytest.mark.recording]

DEFINE = """\
import time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(5000))
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with the extension, and a function that was defined in cell 2."""
    with kernel(tmp_path_factory.mktemp("session")) as started:
        assert started.run("%load_ext tachograph").errors == ""
        started.run(DEFINE, "definition")
        yield started


def names(recording: Path) -> set[str]:
    return {row["qualname"] for row in support.rows(recording, "codes")}


@pytest.fixture(scope="module")
def recorded(session: Kernel) -> tuple[int, Output]:
    """The number and the output of a cell that was recorded into cell.tacho."""
    cell = "%%tachograph -o cell.tacho --interval 2\nburn(0.3)\nkept = bytearray(30_000_000)\n7"
    said = session.run(cell, "of-the-cell")
    return int(session.run("print(len(In) - 2)").text), said


def test_a_cell_is_recorded_under_the_numbers_of_its_own_lines(session: Kernel, recorded: tuple[int, Output]) -> None:
    number, said = recorded
    assert (said.result, said.errors, said.raised) == ("7", "", None)
    rows = support.rows(session.folder / "cell.tacho", "files")
    own = next(row for row in rows if row["cell"] == number)
    assert own["cell_id"] == "of-the-cell"
    assert own["source"].splitlines()[1:] == ["burn(0.3)", "kept = bytearray(30_000_000)", "7"]
    defined = next(row for row in rows if row["cell_id"] == "definition")
    assert defined["source"] == DEFINE
    found = support.analyze(session.folder / "cell.tacho", cwd=session.folder)
    lines = {(line["file"], line["line"]): line for line in found["lines"]}
    held = max(found["lines"], key=lambda line: line["peak_bytes"] or 0)
    assert (held["file"], held["line"]) == (f"In [{number}]", 3)
    assert lines[f"In [{defined['cell']}]", 5]["cpu_s"] > 0
    assert [span["name"] for span in support.rows(session.folder / "cell.tacho", "spans")] == [f"In [{number}]"]


class Frames(HTMLParser):
    """The frames of a page, and the text of what is underneath."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[dict[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "iframe":
            self.frames.append(dict(attributes))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_is_a_page_in_a_sandbox_with_its_text_underneath(recorded: tuple[int, Output]) -> None:
    number, said = recorded
    (shown,) = said.shown
    assert f" tachograph  In [{number}]\n" in shown["text/plain"]
    assert "kept = bytearray(30_000_000)" in shown["text/plain"]
    page = Frames()
    page.feed(shown["text/html"])
    (frame,) = page.frames
    assert set((frame["sandbox"] or "").split()) == {"allow-scripts", "allow-popups"}
    assert (frame["srcdoc"] or "").startswith("<!doctype html>")
    assert shown["text/plain"] in page.text


def test_a_line_is_recorded_and_its_errors_are_its_own(session: Kernel) -> None:
    said = session.run("total = 0\n%tachograph -q --cpu-only total = sum(range(1000))\nprint(total)")
    assert (said.text, said.raised) == ("499500\n", None)
    said = session.run("%tachograph -q 1 / 0\nprint('not reached')")
    assert (said.raised, said.text) == ("ZeroDivisionError", "")
    assert "extension.py" not in said.traceback


def test_a_cell_that_fails_shows_its_own_traceback_and_the_report(session: Kernel) -> None:
    said = session.run("%%tachograph\nburn(0.05)\nraise ValueError('mine')")
    assert said.raised == "ValueError"
    assert re.search(r"line 3\b", said.traceback)
    assert "extension.py" not in said.traceback
    assert said.report.startswith(" tachograph  In [")


def test_await_works_in_a_recorded_cell(session: Kernel) -> None:
    said = session.run(
        "%%tachograph -q -o awaited.tacho\nimport asyncio\nawait asyncio.sleep(0.01)\nburn(0.05)\n'awaited'"
    )
    assert (said.result, said.raised, said.errors) == ("'awaited'", None, "")
    assert "burn" in names(session.folder / "awaited.tacho")


def test_an_interrupt_is_the_cells_and_the_report_is_shown(session: Kernel) -> None:
    interrupted: list[bool] = []

    def interrupt(output: object) -> None:
        if not interrupted and "running" in getattr(output, "text", ""):
            interrupted.append(True)
            session.manager.interrupt_kernel()

    said = session.run("%%tachograph\nprint('running', flush=True)\nburn(100)", when=interrupt)
    assert said.raised == "KeyboardInterrupt"
    assert "extension.py" not in said.traceback
    assert said.report.startswith(" tachograph  In [")
    assert session.run("6 * 7").result == "42"


def test_two_runs_of_an_edited_cell_are_compared_line_by_line(session: Kernel) -> None:
    session.run("%%tachograph -q\nfirst = bytearray(4_000_000)\nburn(0.02)", "edited")
    session.run("%tachograph -q burn(0.02)", "another")
    session.run("%%tachograph -q\nadded = 0\nfirst = bytearray(40_000_000)\nburn(0.02)", "edited")
    new = int(session.run("print(len(In) - 2)").text)
    # The last recorded cell with its own run before, not with what ran between.
    said = session.run("%tachograph diff --anyway")
    assert said.errors == ""
    assert f"In [{new - 2}] to In [{new}]" in said.report


def test_cells_from_start_to_stop_are_spans_under_their_numbers(session: Kernel) -> None:
    assert session.run("%tachograph start --output several.tacho --quiet").errors == ""
    first = int(session.run("burn(0.05); print(len(In) - 1)").text)
    refused = session.run("%tachograph burn(0.05)")
    assert "is being recorded already: '%tachograph stop' ends that" in refused.errors
    assert session.run("%tachograph stop").errors == ""
    spans = [span["name"] for span in support.rows(session.folder / "several.tacho", "spans")]
    assert spans == [f"In [{first + each}]" for each in (-1, 0, 1, 2)]
    assert "burn" in names(session.folder / "several.tacho")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("%%tachograph --bogus\nprint('ran')", "there is no option --bogus"),
        ("%%tachograph --interval\nprint('ran')", "option --interval needs a value"),
        ("%%tachograph --interval 0\nprint('ran')", "interval: "),
        ("%%tachograph --rotate 1s\nprint('ran')", "--rotate does not work in a notebook"),
        ("%%tachograph nonsense\nprint('ran')", "%%tachograph takes options only"),
        ("%%tachograph -o cell.tacho\nprint('ran')", "exists; use --force to replace it"),
        ("%tachograph", "there is nothing to record"),
        ("%tachograph stop", "nothing is being recorded"),
        ("%tachograph diff 123456", "there is no recording of In [123456]"),
        ("%tachograph diff none.tacho", "there is no recording none.tacho"),
        ("%tachograph diff 1 2 3", "%tachograph diff [BASE [NEW]] takes"),
    ],
)
@pytest.mark.usefixtures("recorded")
def test_what_is_wrong_is_one_line_and_nothing_runs(session: Kernel, code: str, message: str) -> None:
    said = session.run(code)
    assert said.text == ""
    assert said.errors.count("\n") == 1, said.errors
    assert message in said.errors
    assert (said.shown, said.traceback.count("\n")) == ([], 0)


def test_a_recording_in_a_recording_is_refused_and_the_outer_one_goes_on(session: Kernel) -> None:
    said = session.run("%%tachograph -q -o outer.tacho\nburn(0.05)\n%tachograph burn(0.01)\nprint('not reached')")
    assert "a recording holds no other" in said.errors
    assert (said.errors.count("\n"), said.text) == (1, "")
    assert "burn" in names(session.folder / "outer.tacho")


def test_help_lists_the_options_of_recording_in_process(session: Kernel) -> None:
    said = session.run("%tachograph --help")
    assert "--interval" in said.text
    assert "--rotate" not in said.text


def test_a_restart_leaves_nothing_behind(tmp_path: Path) -> None:
    with kernel(tmp_path / "restarted") as started:
        started.run("%load_ext tachograph")
        started.run(DEFINE)
        started.run("%%tachograph -q\nburn(0.02)")
        assert len(started.sessions()) == 1
        # In an orderly restart, in the middle of a recording.
        started.run("%tachograph start --output first.tacho")
        pid = started.pid
        started.client.stop_channels()
        started.manager.restart_kernel(now=False)
        assert started.sessions() == []
        support.wait_for(lambda: not beside(pid), "the end of the process beside the kernel", timeout=60)
        assert json.loads((started.folder / "first.tacho" / "manifest.json").read_text())["state"] == "complete"
        # And where the kernel is killed: what is there then, the next session clears.
        started.connect()
        started.run("%load_ext tachograph")
        started.run("%tachograph start")
        pid = started.pid
        started.client.stop_channels()
        started.manager.restart_kernel(now=True)
        support.wait_for(lambda: not beside(pid), "the end of the process beside the kernel", timeout=60)
        assert len(started.sessions()) == 1
        started.connect()
        assert started.run("%load_ext tachograph").errors == ""
        assert started.sessions() == []


def test_unloaded_the_magics_are_gone_and_the_folder_as_well(tmp_path: Path) -> None:
    with kernel(tmp_path / "unloaded") as started:
        started.run("%load_ext tachograph")
        started.run("%tachograph start")
        assert len(started.sessions()) == 1
        pid = started.pid
        assert started.run("%unload_ext tachograph").errors == ""
        assert (started.sessions(), beside(pid)) == ([], [])
        assert "not found" in started.run("%tachograph 1 + 1").errors
        assert started.run("%load_ext tachograph").errors == ""
        assert started.run("%tachograph -q 1 + 1").errors == ""
        folder = Path(f"/proc/{pid}/fd")
        assert [os.readlink(each) for each in folder.iterdir() if "tacho" in os.readlink(each)] == [
            str(started.temporary / started.sessions()[0] / "lock")
        ]


SESSION = """\
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
define = "import time\\ndef burn(end):\\n    while time.process_time() < end:\\n        sum(range(5000))\\n"
shell.run_cell(define, store_history=True)
shell.run_cell("burn(time.process_time() + 0.3)\\nprint(6 * 7)", store_history=True)
"""


@pytest.mark.parametrize("options", [[], ["--no-sources"]])
def test_cells_of_a_kernel_that_is_recorded_from_outside(tmp_path: Path, options: list[str]) -> None:
    """As under ``jupyter nbconvert --execute``: their texts are told when the interpreter ends."""
    script = tmp_path / "session.py"
    script.write_text(SESSION)
    run = support.record([script], tmp_path, "--interval", "2", *options)
    assert (run.status, run.stdout.split()[-1:]) == (0, ["42"]), run.stderr
    recording = tmp_path / "run.tacho"
    cells = {row["cell"]: row["source"] for row in support.rows(recording, "files") if row["cell"] is not None}
    if options:
        assert not any(cells.values())
        return
    assert cells[1].startswith("import time\ndef burn(end):")
    assert cells[2].startswith("burn(")
    found = support.analyze(recording, cwd=tmp_path)
    assert any(line["file"] == "In [1]" and line["cpu_s"] > 0.1 for line in found["lines"])


def test_cells_of_a_notebook_that_is_run_have_their_text(tmp_path: Path) -> None:
    """``%run`` of a notebook or an ``.ipy`` file: another compiler than the shell's makes the cells."""
    code = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end:\n    sum(range(5000))\n"
    (tmp_path / "other.ipy").write_text(code)
    script = tmp_path / "session.py"
    script.write_text(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().run_cell('%run other.ipy', store_history=True)\n"
    )
    run = support.record([script], tmp_path, "--interval", "2")
    assert run.status == 0, run.stderr
    assert code in [row["source"] for row in support.rows(tmp_path / "run.tacho", "files")]

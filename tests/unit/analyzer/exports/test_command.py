"""The commands export and scrub as a user types them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tachograph.analyzer.commands.export import export, scrub
from tachograph.analyzer.conclusions.leaks import DEFINITIONS
from tachograph.analyzer.exports import FORMATS
from tachograph.analyzer.recording.question_options import DROPPABLE, ExportFormat, LeakRule
from unit.analyzer.exports import program
from unit.analyzer.recordings import Builder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    program.write(tmp_path / "run.tacho")
    return tmp_path


def invoke(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))  # type: ignore[arg-type]


def refusal(result: Result) -> str:
    """The one line with which a command refuses."""
    assert result.exit_code == 2, result.output
    (line,) = result.output.splitlines()
    assert line.startswith("tachograph: ")
    return line.removeprefix("tachograph: ")


def test_commands_offer_what_there_is() -> None:
    assert tuple(FORMATS) == tuple(ExportFormat)
    assert tuple(definition.name for definition in DEFINITIONS) == tuple(LeakRule)


@pytest.mark.parametrize("name", map(str, ExportFormat))
def test_a_file_is_named_after_the_recording(here: Path, name: str) -> None:
    result = invoke(export, name)
    assert result.exit_code == 0, result.output
    written = here / f"run{FORMATS[name].suffix}"
    assert written.stat().st_size > 100
    assert f"tachograph: CPU time of run.tacho in {written.name}" in result.output
    assert "exists already: say where to write with --output" in refusal(invoke(export, name))
    assert invoke(export, name, "run.tacho", "-o", written.name).exit_code == 0
    assert [path.name for path in here.iterdir() if path.name.startswith(".")] == []


def test_standard_output_gets_the_file_and_nothing_else(here: Path) -> None:
    result = invoke(export, "speedscope", "run.tacho", "--metric", "wait", "--thread", "main", "-o", "-")
    (profile,) = json.loads(result.stdout)["profiles"]
    assert profile["endValue"] == 40 * program.MS
    assert {path.name for path in here.iterdir()} == {"run.tacho"}


def test_a_pipe_is_written_and_stays_one(here: Path) -> None:
    """A device, too: as root, a file that takes its name would take the place of /dev/null."""
    pipe = here / "pipe"
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        result = invoke(export, "speedscope", "run.tacho", "-o", str(pipe))
        assert (result.exit_code, pipe.is_fifo()) == (0, True), result.output
        assert json.loads(reader.read())["profiles"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["pprof", "run.tacho", "--thread", "nobody"],
            "no thread is named 'nobody' or has that id; there are: MainThread",
        ),
        (
            ["pprof", "run.tacho", "--process", "1"],
            "no process has the id or the name '1'; there are: ",
        ),
        (["pprof", "run.tacho", "--scope", "nothing*"], "no recorded file matches --scope 'nothing*'"),
        (["pprof", "run.tacho", "--from", "5", "--to", "2"], "--from is not before --to: the window is empty"),
        (
            ["pprof", "run.tacho", "-o", "missing/run.pb.gz"],
            "cannot write missing/run.pb.gz: No such file",
        ),
        (["pprof", "no.tacho"], "no.tacho does not exist"),
    ],
)
def test_refusals_are_one_line(here: Path, arguments: list[str], said: str) -> None:
    assert refusal(invoke(export, *arguments)).startswith(said)
    assert {path.name for path in here.iterdir()} == {"run.tacho"}


@pytest.mark.parametrize("metric", ["wait", "allocated", "live", "resident", "end", "copied"])
def test_what_was_not_recorded_is_not_exported(here: Path, metric: str) -> None:
    made = Builder(here / "less.tacho", parameters={"waits": False})
    made.cpu(made.stack((made.code(made.file("a.py")), 0)))
    made.write()
    assert refusal(invoke(export, "csv", "less.tacho", "--metric", metric)).startswith(
        f"{'waiting' if metric == 'wait' else 'memory'} was not recorded: there is no metric '{metric}'"
    )


def test_too_much_for_the_order_of_time_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tachograph.analyzer.exports import firefox

    monkeypatch.setattr(firefox, "LIMIT", 3)
    assert "too many to keep in the order of time: choose a part with --from" in refusal(invoke(export, "firefox"))


def test_scrub_writes_beside_the_recording(here: Path) -> None:
    result = invoke(scrub)
    assert result.exit_code == 0, result.output
    manifest = json.loads((here / "run.scrubbed.tacho" / "manifest.json").read_text("utf-8"))
    assert manifest["scrubbed"]["dropped"] == sorted(DROPPABLE)
    assert (here / "run.scrubbed.tacho").stat().st_mode & 0o777 == 0o700
    assert "exists already" in refusal(invoke(scrub, "run.tacho"))


def test_scrub_drops_what_is_named_and_no_more(here: Path) -> None:
    assert invoke(scrub, "run.tacho", "--drop", "argv", "-o", "a.tacho").exit_code == 0
    manifest = json.loads((here / "a.tacho" / "manifest.json").read_text("utf-8"))
    assert manifest["scrubbed"]["dropped"] == ["argv"]
    assert "there is nothing to remove" in refusal(invoke(scrub, "run.tacho", "--drop", "none", "-o", "b.tacho"))

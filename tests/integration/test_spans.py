"""Spans of a recorded program are in its recording, with either sampler."""

import json
from pathlib import Path
from typing import Any

from integration import support

PROGRAM = """
import threading, time
from tachograph.recorder import pause, resume, span

@span("work", of="thread")
def work():
    time.sleep(0.01)

with span("epoch", n=3, name="a \\"quoted\\" naïve 😀"):
    with span("batch"):
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    try:
        with span("failing"):
            raise KeyError("through")
    except KeyError:
        print("passed through")
pause()
with span("unseen"):
    pass
resume()
with span("after"):
    pass
"""

FORKS = """
import os
from tachograph.recorder import span
with span("both"):
    child = os.fork()
if child:
    print(os.waitpid(child, 0)[1])
else:
    with span("child"):
        pass
"""


def recorded(folder: Path) -> list[dict[str, Any]]:
    """The rows of the table, with the names of threads."""
    recording = folder / "run.tacho"
    names = [row["name"] for row in support.rows(recording, "threads")]
    return [{**row, "thread": names[row["thread"]]} for row in support.rows(recording, "spans")]


def test_a_recorded_program(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = support.record(["program.py"], tmp_path, "--sampler", sampler)
    assert done == support.Outcome(0, "passed through\n", "")
    rows = recorded(tmp_path)
    main = rows[0]["thread"]
    assert [(row["name"], row["parent"], row["thread"]) for row in rows] == [
        ("epoch", None, main),
        ("batch", 0, main),
        ("work", None, "worker"),
        ("failing", 0, main),
        ("after", None, main),
    ]
    assert [json.loads(row["fields"]) for row in rows if row["fields"] is not None] == [
        {"n": 3, "name": 'a "quoted" naïve 😀'},
        {"of": "thread"},
    ]
    epoch, batch, work, *_ = ((row["start_ns"], row["end_ns"]) for row in rows)
    assert epoch[0] <= batch[0] <= work[0] <= work[1] <= batch[1] <= epoch[1]
    assert work[1] - work[0] >= 10_000_000
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["tables"]["spans"]["rows"] == 5


def test_in_a_child_process_they_are_its_own(tmp_path: Path, sampler: str) -> None:
    """A span that was open at the fork ends in both."""
    done = support.record(["-c", FORKS], tmp_path, "--sampler", sampler)
    assert (done.status, done.stdout) == (0, "0\n")
    found = sorted((row["process"], row["name"]) for row in recorded(tmp_path))
    assert found == [(0, "both"), (1, "both"), (1, "child")]

"""What a report in the terminal loads: each of these takes longer to import than the report takes to make."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.recording

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"

FINDINGS = "tachograph.analyzer.conclusions.redundancy.findings"
DEAR = ("pandas", "matplotlib", "jinja2", "pyarrow.compute", "pyarrow.dataset", "pyarrow.acero", "numpy.ma", FINDINGS)

PROGRAM = """
import sys
from tachograph.cli import main
names = sys.argv.pop(1).split(",")
try:
    main(sys.argv[1:])
finally:
    print(*[name for name in names if name in sys.modules], file=sys.stderr)
"""


def loaded(*arguments: str, of: Sequence[str] = DEAR) -> str:
    """Those of the modules ``of`` that a command loads."""
    command = [sys.executable, "-c", PROGRAM, ",".join(of), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.strip()


@pytest.mark.parametrize(
    ("recording", "options"),
    [("memory", []), ("memory", ["--json", "-"]), ("memory", ["--memory"]), ("whole", ["--processes"])],
)
def test_a_report_in_the_terminal_loads_nothing_dear(recording: str, options: list[str]) -> None:
    assert loaded("analyze", str(VECTORS / f"{recording}.tacho"), *options) == ""


OF_A_REPORT = ("tachograph.analyzer.commands.analyze", "tachograph.analyzer.profile.build")


def test_what_is_in_a_recording_is_shown_without_the_parts_of_a_report() -> None:
    recording = str(VECTORS / "memory.tacho")
    assert loaded("info", recording, of=OF_A_REPORT) == ""
    assert loaded("analyze", recording, of=OF_A_REPORT).split() == [*OF_A_REPORT]


def test_redundant_accesses_are_judged_where_some_were_watched() -> None:
    assert FINDINGS in loaded("analyze", str(VECTORS / "redundancy.tacho")).split()


def test_the_last_seconds_of_a_killed_process_need_a_filter() -> None:
    """Rows of other processes lie between those of that time."""
    assert loaded("analyze", str(VECTORS / "tree.tacho"), "--processes") == "pyarrow.compute"


SPOOL_READER = ("tachograph.format.spool.assembly",)
OPENING = f"""
import sys
from tachograph.analyzer.recording.opened import Recording
with Recording.open(sys.argv[1]) as recording:
    list(recording.batches("cpu", ("time_ns",)))
print(*[name for name in (*{SPOOL_READER}, "zipfile") if name in sys.modules])
"""


def loaded_to_open(recording: Path) -> list[str]:
    """The readers of spools and zip files that a new interpreter loads to open a recording."""
    ran = subprocess.run([sys.executable, "-c", OPENING, recording], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_a_finished_recording_in_a_folder_loads_no_reader_of_spools_or_zip_files() -> None:
    assert loaded_to_open(VECTORS / "memory.tacho") == []


def test_others_do(tmp_path: Path) -> None:
    """An unfinished recording loads the reader of spools, one in a zip file the module for that."""
    assert {*SPOOL_READER} <= {*loaded_to_open(VECTORS / "tree-killed.tacho")}
    zipped = shutil.make_archive(str(tmp_path / "memory.tacho"), "zip", VECTORS / "memory.tacho")
    assert loaded_to_open(Path(zipped)) == ["zipfile"]


def test_a_page_does() -> None:
    """Without what the other tests look for, they could not fail."""
    assert "jinja2" in loaded("analyze", str(VECTORS / "memory.tacho"), "--html", "/dev/null")


def test_the_help_of_a_report_loads_nothing_of_it() -> None:
    assert loaded("analyze", "--help", of=("pyarrow", "rich.live", *OF_A_REPORT)).split() == [OF_A_REPORT[0]]

"""A full disk: told before the start, survived in the middle, and what was whole is kept."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

TICKER = support.PROGRAMS / "ticker.py"


def in_small_disk(folder: Path, size: str, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a shell script in a mount namespace of its own, where ``folder/disk`` is a file system of ``size``.

    $RECORD stands for the recording command, $TACHOGRAPH for the command as such.
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare to make a small file system with")
    (folder / "disk").mkdir(exist_ok=True)
    mount = f"mount -t tmpfs -o size={size},mode=0777 tachograph-test disk"
    if subprocess.run([unshare, "-rm", "sh", "-c", mount], cwd=folder, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount a small file system")
    command = f"{sys.executable} -m tachograph"
    return subprocess.run(
        [unshare, "-rm", "sh", "-c", f"{mount} || exit 99\n{script}"],
        cwd=folder,
        env=support.environment(TACHOGRAPH=command, RECORD=f"{command} record -q"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


BURN = "def burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"


def comes_to_its_end(folder: Path, size: str, code: str, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a script that records ``code``, which says so and ends with 3; what was made in ``folder/out`` is kept."""
    (folder / "out").mkdir()
    (folder / "program.py").write_text(code + "print('the end')\nsys.exit(3)\n", encoding="utf-8")
    done = in_small_disk(folder, size, script)
    assert done.returncode == 3, done.stderr
    assert done.stdout == "the end\n"
    return done


def test_full_before_the_start(tmp_path: Path) -> None:
    """One line, status 2, and the program was not started."""
    script = "head -c 1m /dev/zero > disk/fill 2>/dev/null; $RECORD -o disk/run.tacho -c 'print(1)'"
    done = in_small_disk(tmp_path, "64k", script)
    support.one_line(support.Outcome(done.returncode, done.stdout, done.stderr), "disk", "full")
    assert done.stdout == ""


# More than the segments that were prepared, which have their place on the disk.
MUCH = """
from tachograph.recorder import span
def write_much(count):
    for _ in range(count):
        with span("s", **{f"field_{number}": "x" * 190 for number in range(19)}):
            pass
        time.sleep(0.0005)
"""
SPANS = 1500
FILL = """
for name, size in (('disk/fill', 64 << 20), ('disk/fill2', 1 << 20)):
    try:
        open(name, 'wb', 0).write(bytes(size))
    except OSError: pass
"""


def test_full_in_the_middle(tmp_path: Path) -> None:
    """The program goes on to its own end; the recording has what came before, and says that what came then is lost."""
    code = f"import os, sys, time\n{BURN}burn(0.4)\n{FILL}{MUCH}write_much({SPANS})\n"
    script = (
        "$RECORD --interval 2 -o disk/run.tacho program.py; status=$?\n"
        "rm -f disk/fill disk/fill2\n"
        "$TACHOGRAPH recover disk/run.tacho >recover.txt 2>&1\n"
        "$TACHOGRAPH analyze disk/run.tacho --json out/report.json 1>&2 || exit 98\n"
        "exit $status"
    )
    done = comes_to_its_end(tmp_path, "20m", code, script)
    assert "Traceback" not in done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert "burn" in {row["function"] for row in report["lines"]}
    losses = support.losses(report)
    assert losses["segments_missing"] > 0
    assert "recording_stopped" not in losses
    assert "the last records of 1 process are lost" in done.stderr


def test_full_for_a_while(tmp_path: Path) -> None:
    """Once there is room again, what was written meanwhile gets its place: nothing is lost."""
    code = (
        f"import os, sys, time\n{BURN}burn(0.4)\n{FILL}{MUCH}"
        f"write_much({SPANS})\n"
        "os.unlink('disk/fill'); os.unlink('disk/fill2')\n"
        "time.sleep(2)\n"
        f"write_much({SPANS})\n"
    )
    script = (
        "$RECORD --interval 2 -o disk/run.tacho program.py; status=$?\n"
        "$TACHOGRAPH analyze disk/run.tacho --json out/report.json 1>&2 || exit 98\n"
        "exit $status"
    )
    comes_to_its_end(tmp_path, "24m", code, script)
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    losses = support.losses(report)
    assert not {"recording_stopped", "segments_missing", "records_dropped"} & losses.keys()
    assert report["spans"][0]["count"] == 2 * SPANS


@pytest.mark.slow
def test_full_again_and_again(tmp_path: Path) -> None:
    """What the program writes does not fit: the recording is complete, with what came first, and counts the rest."""
    code = (
        f"import os, sys, time\n{BURN}burn(0.4)\n{MUCH}"
        f"for _ in range(4):{FILL.replace(chr(10), chr(10) + '    ')}\n"
        "    write_much(500)\n"
        "    os.unlink('disk/fill'); os.unlink('disk/fill2')\n"
        "    write_much(1000)\n"
        "time.sleep(1)\n"
    )
    script = (
        "$RECORD --interval 2 -o disk/run.tacho program.py; status=$?\n"
        "cp disk/run.tacho/manifest.json out\n"
        "$TACHOGRAPH analyze disk/run.tacho --json out/report.json 1>&2 || exit 98\n"
        "exit $status"
    )
    comes_to_its_end(tmp_path, "12m", code, script)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["state"] == "complete"
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert "burn" in {row["function"] for row in report["lines"]}
    assert 1000 < report["spans"][0]["count"] < 6000
    assert {"segments_missing", "records_dropped"} & support.losses(report).keys()


def test_full_at_the_end(tmp_path: Path) -> None:
    """No room for the tables: output and status are the program's, and one line says what can be done later."""
    code = (
        f"import os, sys, time\n{BURN}burn(0.4)\n"
        "fill = os.open('disk/fill', os.O_WRONLY | os.O_CREAT)\n"
        "for size in (1 << 20, 1 << 12):\n"
        "    try:\n"
        "        while True: os.write(fill, bytes(size))\n"
        "    except OSError: pass\n"
    )
    script = (
        "$RECORD --interval 5 -o disk/run.tacho program.py 2>out/errors; status=$?\n"
        "test -d disk/run.tacho/spool || exit 96\n"
        "$TACHOGRAPH analyze disk/run.tacho --json out/before.json 1>&2 || exit 97\n"
        "rm -f disk/fill\n"
        "$TACHOGRAPH recover disk/run.tacho 1>&2 || exit 95\n"
        "$TACHOGRAPH analyze disk/run.tacho --json out/after.json 1>&2 || exit 98\n"
        "exit $status"
    )
    comes_to_its_end(tmp_path, "12m", code, script)
    (line,) = (tmp_path / "out" / "errors").read_text(encoding="utf-8").splitlines()
    assert "recover" in line
    assert "no space left" in line.lower()
    for name in ("before", "after"):
        assert '"burn"' in (tmp_path / "out" / f"{name}.json").read_text(encoding="utf-8")

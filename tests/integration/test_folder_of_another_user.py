"""Root records in a folder of another user's, who puts something else in the recording's place while it runs."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import support

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for two users"),
]

NOBODY = 65534
PROGRAM = """
import os, subprocess, sys, time
def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: sum(range(1000)); bytes(700_000)
while not os.path.exists("go_on"): busy(0.02); time.sleep(0.08)  # leaves a processor to what makes the windows
subprocess.run([sys.executable, "-c", "sum(range(10**7))"])
if os.fork() == 0:
    busy(0.3)
    os._exit(0)
os.wait()
busy(0.5)
"""
PRECIOUS = (
    "manifest.json",
    "cpu.parquet",
    "spool/recorder.json",
    "spool/processes.log",
    "spool/1-2.ctl",
    "spool/1-2.000000.seg",
    "spool/texts.000001.jsonl",
    "spool/arm-error.txt",
    "other.txt",
)


@pytest.fixture
def theirs(open_folder: Path) -> Path:
    """A folder that belongs to another user, and that all may enter."""
    folder = open_folder / "theirs"
    folder.mkdir(mode=0o755)
    os.chown(folder, NOBODY, NOBODY)
    return folder


@pytest.fixture
def ours(open_folder: Path) -> Path:
    """A folder of root's with files of the names that a recording has."""
    folder = open_folder / "ours"
    for name in PRECIOUS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious\n")
    return folder


ROTATE = ("--rotate", "1s", "--keep", "1")


def record_and_swap(theirs: Path, after_s: float, swap: Callable[[], object], *options: str) -> tuple[int, str]:
    """Record in the folder; ``swap`` is called as its owner, when the recording was there for a while.

    Afterwards the program goes on, with ``ROTATE`` until windows were closed and deleted, and starts two processes.
    """
    (theirs / "work.py").write_text(PROGRAM)
    with support.start(["work.py"], theirs, *options) as command:
        support.wait_for(lambda: (theirs / "run.tacho" / "spool").exists(), "the recording")
        time.sleep(after_s)
        support.as_user(NOBODY, swap)
        time.sleep(1.5)
        if options == ROTATE:
            support.wait_for(lambda: any(theirs.glob("run.000[2-9].tacho")), "windows", 60)
        (theirs / "go_on").touch()
        _, errors = command.communicate(timeout=90)
        return command.returncode, errors


def check_moved(moved: Path, errors: str) -> None:
    """The recording is whole where it was moved to, and that is told in one line."""
    assert errors == f"tachograph: run.tacho was renamed while it was recorded: the recording is in {moved}\n"
    manifest = json.loads((moved / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete"
    assert "its directory was renamed while it was recorded" in manifest["notes"]
    assert not (moved / "spool").exists()
    assert sum(row["recorded"] == "python" for row in support.rows(moved, "processes")) == 3


@pytest.mark.parametrize(
    ("options", "after_s"),
    [((), 0.0), *(pytest.param(*each, marks=pytest.mark.slow) for each in (((), 1.5), (ROTATE, 0.0), (ROTATE, 1.5)))],
)
def test_a_link_to_a_folder_of_root_s(theirs: Path, ours: Path, after_s: float, options: tuple[str, ...]) -> None:
    before, names = support.digests(ours), sorted(ours.rglob("*"))

    def swap() -> None:
        os.rename(theirs / "run.tacho", theirs / "moved.tacho")
        os.symlink(ours, theirs / "run.tacho")

    status, errors = record_and_swap(theirs, after_s, swap, *options)
    assert support.digests(ours) == before
    assert sorted(ours.rglob("*")) == names
    assert status == 0
    check_moved(theirs / "moved.tacho", errors)
    assert len(list(theirs.glob("run.*.tacho"))) == bool(options)
    assert not list(theirs.glob(".tmp-*"))


@pytest.mark.parametrize(
    "options", [(), *(pytest.param(options, marks=pytest.mark.slow) for options in (ROTATE, ("--sampler", "signal")))]
)
def test_a_folder_full_of_links(theirs: Path, ours: Path, options: tuple[str, ...]) -> None:
    """Nothing is written through them, and nothing that they lead to is shown."""
    before = support.digests(ours)

    def swap() -> None:
        mine = theirs / "mine"
        (mine / "spool").mkdir(parents=True)
        for name in PRECIOUS:
            os.symlink(ours / "other.txt", mine / name)
            os.symlink(ours / "other.txt", mine / Path(name).parent / f".tmp-{Path(name).name}")
        os.rename(theirs / "run.tacho", theirs / "moved.tacho")
        os.rename(mine, theirs / "run.tacho")

    status, errors = record_and_swap(theirs, 1.0, swap, *options)
    assert support.digests(ours) == before
    assert "precious" not in errors
    assert status == 0
    assert all(path.is_symlink() or path.is_dir() for path in (theirs / "run.tacho").rglob("*"))
    if "signal" not in options:  # its processes go by the path alone, and stop where that leads elsewhere
        check_moved(theirs / "moved.tacho", errors)


def test_a_window_replaced_by_another_recording(theirs: Path) -> None:
    """What has the name of a window that is over is deleted only if it is that window."""
    other = theirs / "other.tacho"
    done = support.record(["-c", "sum(range(10**6))"], theirs, output="other.tacho")
    assert done.status == 0
    before = support.digests(other)

    def swap() -> None:
        support.wait_for(lambda: (theirs / "run.0001.tacho").exists(), "a window")
        os.rename(theirs / "run.0001.tacho", theirs / "first.tacho")
        os.rename(other, theirs / "run.0001.tacho")

    status, errors = record_and_swap(theirs, 0.0, swap, *ROTATE)
    assert (status, errors) == (0, "")
    assert support.digests(theirs / "run.0001.tacho") == before


def test_a_recording_from_inside(theirs: Path, ours: Path) -> None:
    """The same for a program that records itself: it, and the process beside it."""
    before, names = support.digests(ours), sorted(ours.rglob("*"))
    code = (
        "import os, sys, time, tachograph.recorder as recorder\n"
        "exec(compile('def f():\\n    return sum(range(1000))\\n', '<made>', 'exec'))\n"
        "import linecache\n"
        "recorder.start('run.tacho')\n"
        "linecache.cache['<made>'] = (40, None, ['def f():\\n', '    return sum(range(1000))\\n'], '<made>')\n"
        "if os.fork() == 0:\n"
        f"    os.setuid({NOBODY})\n"
        "    os.rename('run.tacho', 'moved.tacho')\n"
        f"    os.symlink({str(ours)!r}, 'run.tacho')\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "end = time.monotonic() + 2.5\n"
        "while time.monotonic() < end: f(); bytes(700_000)\n"
        "recorder.stop()\n"
    )
    done = support.bare(["-c", code], theirs)
    assert (done.status, done.stderr) == (0, "")
    assert support.digests(ours) == before
    assert sorted(ours.rglob("*")) == names
    manifest = json.loads((theirs / "moved.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete"


def test_without_the_recording_command(theirs: Path, ours: Path) -> None:
    """Its processes then write their records themselves, into the spool and into no other folder."""
    names = sorted(ours.rglob("*"))
    code = (
        "import os, time\nopen('pid', 'w').write(f'{os.getpid()}')\nwhile not os.path.exists('go_on'): sum(range(1000))"
    )

    def swap() -> None:
        os.rename(theirs / "run.tacho", theirs / "moved.tacho")
        os.symlink(ours, theirs / "run.tacho")

    with support.start(["-c", code], theirs) as command:
        support.wait_for(lambda: any((theirs / "run.tacho" / "spool").glob("*.ctl")), "the first copies")
        support.as_user(NOBODY, swap)
        command.kill()
        command.wait()
        time.sleep(3)
        (theirs / "go_on").touch()
        pid = int((theirs / "pid").read_text(encoding="utf-8"))
        support.wait_for(lambda: not support.is_running(pid), "the program's end")
    assert sorted(ours.rglob("*")) == names

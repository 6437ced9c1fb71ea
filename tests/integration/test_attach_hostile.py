"""Programs that do what few do to signals, limits, descriptors, folders and rights: attached to, all comes out as bare.

Those of ``programs/conditions`` begin when they are attached to; ``attached_amid.py`` is in the midst of its work then.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from integration import support
from integration.test_attach import STANDBY, running, starts_attach

pytestmark = [pytest.mark.native, pytest.mark.recording]

CONDITIONS = support.PROGRAMS / "conditions"


def of_conditions(name: str) -> list[str]:
    """The command line of ``NAME ARGUMENT...``, which waits until it is let go."""
    program, *arguments = name.split()
    quiet = ("-W", "ignore:This process:DeprecationWarning")  # is multi-threaded: of forks, with the process's id
    return [sys.executable, *quiet, str(support.PROGRAMS / "let_go.py"), str(CONDITIONS / f"{program}.py"), *arguments]


def amid(kind: str) -> list[str]:
    return [sys.executable, str(support.PROGRAMS / "attached_amid.py"), kind]


def attached(folder: Path, command: list[str], *, stands_by: bool) -> support.Outcome:
    """What comes of a program that is recorded from before it is let go to its end."""
    with running(command, folder, STANDBY if stands_by else {}) as process:
        recorder = starts_attach(process.pid, "-o", "run.tacho", cwd=folder)
        try:
            assert recorder.stderr is not None
            line = recorder.stderr.readline()
            assert "Ctrl-C ends the recording" in line, line
            (folder / "go").touch()
            out, errors = process.communicate(timeout=60)
            words = recorder.communicate(timeout=60)[1]
            assert recorder.returncode == 0, words
        finally:
            support.kill_quietly(recorder.pid)
            recorder.communicate(timeout=30)
        return support.Outcome(support.shell_status(process.returncode), "ready\n" + out, errors)


def same(folder: Path, command: list[str], *, stands_by: bool) -> dict[str, Any]:
    """The manifest, after the program came out the same bare and attached to."""
    bare, recorded = (folder / way for way in ("bare", "attached"))
    for place in (bare, recorded):
        place.mkdir()
        place.chmod(0o755)
    (bare / "go").touch()
    expected = support.run(command, bare)
    assert attached(recorded, command, stands_by=stands_by) == expected
    manifest: dict[str, Any] = json.loads((recorded / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete"
    return manifest


def doors(*names: str, slow: bool = False) -> list[Any]:
    """Both ways in for each; one of them is tried by the slow tests alone, for some names the standby."""
    found = []
    for number, name in enumerate(names):
        for stands_by in (False, True):
            marks = [pytest.mark.slow] if slow or stands_by == bool(number % 2) else []
            door = "standby" if stands_by else "entered"
            found.append(pytest.param(name, stands_by, id=f"{name.replace(' ', '-')}-{door}", marks=marks))
    return found


@pytest.mark.parametrize(
    ("name", "stands_by"),
    [
        *doors("interpreters", "closed_files", "last_thread raw", "limits files", "ptrace_me", "seccomp_hooks"),
        *doors("seccomp_strict", "signalfd", "chroot chroot"),
        *doors(
            "sigwait", "wakeup_fd", "watchers", "ptrace_child", "ptrace_me libc.so.6", "seccomp_filter prctl",
            "seccomp_filter seccomp stays", "chroot chdir", "drops_rights", "limits size", "limits stack",
            "limits signals", "limits processes", "last_thread pthread", "loops gevent", "loops eventlet",
            "loops greenlet", "loops uvloop", "rights nothing-readable syscall", "served_pages", "traced_by_child",
            "wait_kinds", slow=True,
        ),
    ],
)  # fmt: skip
def test_what_a_program_does_while_it_is_attached_to(tmp_path: Path, name: str, stands_by: bool) -> None:
    if name.startswith(("chroot chroot", "drops_rights")) and os.geteuid() != 0:
        pytest.skip("only root can")
    if name.startswith("loops "):
        pytest.importorskip(name.split()[1])
    manifest = same(tmp_path, of_conditions(name), stands_by=stands_by)
    assert manifest["tables"]["cpu"]["rows"] > 0
    notes = " ".join(manifest["notes"])
    assert name.startswith("seccomp") == ("seccomp" in notes), notes


@pytest.mark.parametrize(
    ("kind", "stands_by"),
    [
        *doors("childless", "comings", "handlers", "homeless", "masked", "timers"),
        pytest.param("switches", False, marks=pytest.mark.slow),
        ("switches", True),
    ],
)
def test_what_a_program_does_when_it_is_attached_to(tmp_path: Path, kind: str, stands_by: bool) -> None:
    same(tmp_path, amid(kind), stands_by=stands_by)


@pytest.mark.parametrize("stands_by", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["entered", "standby"])
def test_a_program_that_closes_all_descriptors_for_good(tmp_path: Path, *, stands_by: bool) -> None:
    """That ends the recording, not the program: neither ``attach`` nor the recording says that it has ended."""
    with running(of_conditions("closed_for_good"), tmp_path, STANDBY if stands_by else {}) as process:
        recorder = starts_attach(process.pid, "-o", "run.tacho", cwd=tmp_path)
        try:
            assert recorder.stderr is not None
            assert "Ctrl-C ends the recording" in recorder.stderr.readline()
            (tmp_path / "go").touch()
            words = recorder.communicate(timeout=60)[1]
            assert recorder.returncode == 0, words
            assert process.poll() is None
        finally:
            support.kill_quietly(recorder.pid)
            recorder.communicate(timeout=30)
        (tmp_path / "done").touch()
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (0, "done\n", "")
    assert "it has ended" not in words
    assert "closed all its descriptors" in words
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete"
    assert any("closed all its descriptors" in note for note in manifest["notes"]), manifest["notes"]
    assert {entry["loss"] for entry in manifest["quality"]} >= {"recording_stopped"}
    (row,) = support.rows(tmp_path / "run.tacho", "processes")
    latest = max(sample["time_ns"] for sample in support.rows(tmp_path / "run.tacho", "cpu"))
    assert row["end_ns"] is None or row["end_ns"] >= latest
    assert row["exit_status"] is None


def test_rights_that_one_thread_gives_up(tmp_path: Path) -> None:
    """The recorder's thread begins anew with fewer; that which stands by knows nothing of them."""
    outcome = attached(tmp_path, of_conditions("rights no_new_privs function"), stands_by=True)
    assert (outcome.status, outcome.stderr) == (0, "")
    before, after = json.loads((tmp_path / "threads.json").read_text(encoding="utf-8"))
    assert len(before) == len(after) == 2
    assert len(set(before) & set(after)) == 1

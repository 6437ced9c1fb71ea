import json
import struct
from pathlib import Path

import pytest

from tachograph.format import Manifest
from tachograph.recorder.arm import leave_reason
from tachograph.recorder.finish import Finished
from tachograph.recorder.manifests import new_manifest
from tachograph.recorder.output import claim
from tachograph.recorder.session import Outcome, Session
from tachograph.recorder.summary import bytes_text, summary
from unit.recorder.spools import write_spool

NO_PROCESS = 2**22 + 1


def session(path: Path, sampler: str = "signal") -> tuple[Session, Path]:
    manifest = new_manifest({"sampler": sampler, "sources": True})
    spool = claim(path, manifest, force=False)
    return Session(path, NO_PROCESS, manifest, ["a.py", "--token", "x"], None), spool


def test_a_session(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    recording, spool = session(path)
    write_spool(spool, 10)
    recording.begin()
    outcome = recording.end(0)
    assert outcome.finished is not None
    assert (outcome.finished.rows["cpu"], outcome.not_recorded, outcome.stopped_early) == (10, None, None)
    assert Manifest.read(path / "manifest.json").argv == ["a.py", "--token", "***"]


@pytest.mark.parametrize(
    ("sampler", "error", "reason"),
    [
        ("signal", None, "it ended before Python had started, or its Python does not have tachograph installed"),
        ("signal", "no room", "no room"),
        ("native", "no room", "no room; --sampler signal may do"),
    ],
)
def test_a_program_that_never_armed(tmp_path: Path, sampler: str, error: str | None, reason: str) -> None:
    path = tmp_path / "a.tacho"
    recording, spool = session(path, sampler)
    if error is not None:
        leave_reason(str(spool), RuntimeError(error))
    recording.begin()
    outcome = recording.end(1)
    assert outcome.not_recorded == reason
    assert outcome.finished is not None
    assert json.loads((path / "manifest.json").read_text())["notes"] == [reason]
    assert summary("a.py", path, outcome) == f"a.py was not recorded: {reason}; {path} holds no samples"


def test_a_recording_that_stopped_early(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    recording, spool = session(path)
    write_spool(spool, 10)
    (control,) = spool.glob("*.ctl")
    data = bytearray(control.read_bytes())
    struct.pack_into("<II", data, 52, 3, 28)
    control.write_bytes(data)
    recording.begin()
    outcome = recording.end(0)
    assert outcome.stopped_early == "recording stopped before the program ended: no space left on device"
    assert "; recording stopped before" in summary("a.py", path, outcome)


def test_the_line_at_the_end() -> None:
    done = Finished(rows={"cpu": 1012, "waits": 3, "threads": 1}, size=31_400, lost={})
    outcome = Outcome(done, None, None, None, 10.24)
    assert summary("fib.py", Path("my run.tacho"), outcome) == (
        "recorded 10.2 s of fib.py: 1,012 CPU samples, 3 waits, 31 KB in 'my run.tacho'; nothing lost; "
        "next: tachograph analyze 'my run.tacho'"
    )
    outcome = Outcome(None, "no space left on device", None, None, 1.0)
    assert summary("fib.py", Path("a.tacho"), outcome) == (
        "fib.py has run, but its recording could not be finished (no space left on device); "
        "all that was recorded is in a.tacho; when that is mended: tachograph recover a.tacho"
    )


@pytest.mark.parametrize(("size", "text"), [(0, "0 KB"), (999, "1 KB"), (48_000, "48 KB"), (1_200_000, "1.2 MB")])
def test_sizes(size: int, text: str) -> None:
    assert bytes_text(size) == text

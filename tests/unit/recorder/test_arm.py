import subprocess
import sys
from pathlib import Path

import pytest

from tachograph.recorder import pause, resume, snapshot
from tachograph.recorder.inprocess import arm
from tachograph.recorder.inprocess.configuration import CONFIG, SPOOL, Configuration, take_from

TEXT = "interval_ns=10000000,waits=1,paused=0,segment=1048576,sampler="


def settings(sampler: str, **more: str) -> dict[str, str]:
    return {"HOME": "/", "TACHOGRAPH_SPOOL": "/spool", "TACHOGRAPH_CONFIG": TEXT + sampler, **more}


def test_the_environment_is_as_it_was() -> None:
    environment = settings("signal", LD_PRELOAD="mine.so")
    config = take_from(environment)
    assert environment == {"HOME": "/", "LD_PRELOAD": "mine.so"}
    assert (config.spool, config.interval_ns, config.segment_size) == ("/spool", 10_000_000, 1 << 20)
    assert (config.sampler, config.paused, config.children, config.rotates) == ("signal", False, True, False)
    assert (config.include, config.exclude, config.log, config.place) == ("", "", "", "")


@pytest.mark.parametrize(
    ("config", "spool", "reason"),
    [
        ("", "spool", "'interval_ns'"),
        ("interval_ns=x,segment=1,paused=0,sampler=signal", "spool", "invalid literal"),
        (TEXT + "signal", "missing", None),
        (TEXT + "native", "missing", None),
    ],
)
def test_a_failure_leaves_the_program_alone_and_a_reason(
    tmp_path: Path, environment: dict[str, str], config: str, spool: str, reason: str | None
) -> None:
    (tmp_path / "spool").mkdir()
    where = {**environment, "TACHOGRAPH_SPOOL": str(tmp_path / spool), "TACHOGRAPH_CONFIG": config}
    command = [sys.executable, "-c", "import os; print('TACHOGRAPH_SPOOL' in os.environ)"]
    done = subprocess.run(command, env=where, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    if reason is not None:
        assert reason in (tmp_path / spool / arm.ERROR_FILE).read_text()


@pytest.mark.parametrize("kind", [TypeError, AttributeError])
def test_files_of_two_versions_leave_the_program_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """The package is replaced while a recorded server runs: its next child has one half of each."""

    def begin(config: Configuration) -> None:
        raise kind("arm(): incompatible function arguments")

    monkeypatch.setenv(SPOOL, str(tmp_path))
    monkeypatch.setenv(CONFIG, TEXT + "native")
    arm.at_start(begin)
    assert "incompatible" in (tmp_path / arm.ERROR_FILE).read_text()


def test_the_reason_is_one_line(tmp_path: Path) -> None:
    arm.leave_reason(str(tmp_path), RuntimeError("no\nroom"))
    arm.leave_reason(str(tmp_path), RuntimeError("of a second process"))
    assert (tmp_path / arm.ERROR_FILE).read_text() == "no room"
    arm.leave_reason(str(tmp_path / "missing"), KeyError("x"))


def test_pause_and_resume_do_nothing_outside_a_recording() -> None:
    pause()
    resume()
    arm.pause()
    arm.resume()
    assert not snapshot()
    assert not arm.snapshot()


def test_version() -> None:
    done = subprocess.run([sys.executable, "-V"], capture_output=True, text=True, check=True)
    assert arm.python_version() == done.stdout.split()[1].rstrip("+")

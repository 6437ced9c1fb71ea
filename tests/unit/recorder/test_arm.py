import os
import subprocess
import sys
from pathlib import Path

import pytest

from tachograph.recorder import arm, pause, resume

CONFIG = "interval_ns=10000000,waits=1,paused=0,segment=1048576,sampler="


def settings(sampler: str, **more: str) -> dict[str, str]:
    return {"HOME": "/", "TACHOGRAPH_SPOOL": "/spool", "TACHOGRAPH_CONFIG": CONFIG + sampler, **more}


def test_the_environment_is_as_it_was() -> None:
    environment = settings("native", LD_PRELOAD="libtachograph.so:mine.so", TACHOGRAPH_PRELOAD_WAS="mine.so")
    spool, config = arm.take_settings(environment)
    assert environment == {"HOME": "/", "LD_PRELOAD": "mine.so"}
    assert spool == "/spool"
    assert config == {"interval_ns": "10000000", "waits": "1", "paused": "0", "segment": "1048576", "sampler": "native"}


@pytest.mark.parametrize(
    ("environment", "left"),
    [
        (settings("native", LD_PRELOAD="libtachograph.so"), {"HOME": "/"}),
        (settings("native", LD_PRELOAD="x", TACHOGRAPH_PRELOAD_WAS=""), {"HOME": "/", "LD_PRELOAD": ""}),
        (settings("signal", LD_PRELOAD="mine.so"), {"HOME": "/", "LD_PRELOAD": "mine.so"}),
        (settings("signal"), {"HOME": "/"}),
    ],
)
def test_preload_is_as_it_was(environment: dict[str, str], left: dict[str, str]) -> None:
    arm.take_settings(environment)
    assert environment == left


@pytest.mark.parametrize("config", ["", CONFIG + "signal", CONFIG + "native", "interval_ns=x,segment=1,paused=0"])
def test_a_failure_leaves_the_program_alone_and_a_reason(tmp_path: Path, environment: dict[str, str], config: str) -> None:
    spool = tmp_path / "spool"
    if "signal" in config:
        spool.mkdir(0o500)
        (spool / "blocker").symlink_to("/")
    code = "import os; print('TACHOGRAPH_SPOOL' in os.environ)"
    missing = spool / "deeper"
    where = {**environment, "TACHOGRAPH_SPOOL": str(missing), "TACHOGRAPH_CONFIG": config}
    done = subprocess.run([sys.executable, "-c", code], env=where, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


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


def test_version() -> None:
    assert arm.python_version() == os.popen(f"{sys.executable} -V").read().split()[1].rstrip("+")

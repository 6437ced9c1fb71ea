"""`make wheels`: a wheel that was built here records in a clean environment without a compiler; the pure one reads."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from installation.support import ROOT, environment, pip, run

pytestmark = pytest.mark.slow

GOLDEN = ROOT / "format-spec" / "vectors"
SCRIPT = "data = [bytes(100_000) for _ in range(50)]\nprint(sum(number % 7 for number in range(3_000_000)))\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel for this interpreter (``native``), and the ``pure`` one."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, str(ROOT / "tools" / "wheels.py"), sys.executable, "--pure", "--dist", str(folder)]
    # The first time, zig builds its C++ library.
    subprocess.run(command, cwd=folder, check=True, timeout=3000)
    pure = folder.glob("tachograph-*-py3-none-any.whl")
    return {"pure": next(pure), "native": next(folder.glob("tachograph-*manylinux*.whl"))}


def metadata(wheel: Path, name: str) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [each for each in archive.namelist() if each.endswith(f".dist-info/{name}")]
        return email.message_from_bytes(archive.read(path))


def without_compiler(programs: Path, *command: str | Path, cwd: Path, status: int = 0) -> str:
    """Runs a command of an environment with nothing else on PATH; what it says."""
    bare = {"PATH": str(programs), "HOME": os.environ.get("HOME", "/")}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=bare, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.native
def test_the_wheel_records_without_a_compiler(wheels: dict[str, Path], tmp_path: Path) -> None:
    programs = environment(tmp_path / "venv")
    pip(wheels["native"], cwd=tmp_path, python=programs / "python")
    (tmp_path / "work.py").write_text(SCRIPT, encoding="utf-8")
    record = ("record", "--output", "run.tacho", "work.py")
    assert "8999994\n" in without_compiler(programs, programs / "tachograph", *record, cwd=tmp_path)
    told = without_compiler(programs, programs / "tachograph", "analyze", "run.tacho", cwd=tmp_path)
    assert "native sampler" in told
    assert "work.py" in told
    told = without_compiler(programs, programs / "tachograph", "analyze", "--memory", "run.tacho", cwd=tmp_path)
    assert "MB held at the peak" in told


@pytest.mark.native
def test_auditwheel_agrees(wheels: dict[str, Path]) -> None:
    tags = metadata(wheels["native"], "WHEEL").get_all("Tag", [])
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"{version}-{version}-manylinux_2_28_x86_64" in tags
    show = ("-m", "auditwheel", "show", str(wheels["native"]))
    told = run(ROOT / "build" / "wheels" / "tools" / "bin" / "python", *show, cwd=ROOT).stdout
    assert "manylinux_2_28_x86_64" in " ".join(told.split())


def test_the_pure_wheel_is_for_every_system(wheels: dict[str, Path], tmp_path: Path) -> None:
    assert metadata(wheels["pure"], "WHEEL")["Root-Is-Purelib"] == "true"
    assert metadata(wheels["pure"], "WHEEL").get_all("Tag") == ["py3-none-any"]
    programs = environment(tmp_path / "venv")
    pip(wheels["pure"], cwd=tmp_path, python=programs / "python")
    told = without_compiler(programs, programs / "tachograph", "analyze", GOLDEN / "whole.tacho", cwd=tmp_path)
    assert "native sampler" in told
    refused = without_compiler(programs, programs / "tachograph", "record", "x.py", cwd=tmp_path, status=2)
    assert "without its native parts" in refused


def test_metadata(wheels: dict[str, Path]) -> None:
    for wheel in wheels.values():
        head = metadata(wheel, "METADATA")
        assert head["Requires-Python"] == ">=3.11"
        assert head["License-Expression"] == "Apache-2.0"
        assert {f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 16)} <= {
            *head.get_all("Classifier", [])
        }
        with zipfile.ZipFile(wheel) as archive:
            assert {"tachograph/py.typed", "tachograph.pth"} <= {*archive.namelist()}

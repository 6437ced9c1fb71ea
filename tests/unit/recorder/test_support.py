import os
import runpy
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import tachograph.recorder
from tachograph.recorder.collect.unrecorded_pythons import NEWEST, OLDEST
from tachograph.recorder.command import support
from tachograph.recorder.problems import Refused


def test_the_signal_sampler_records_wherever_these_tests_run() -> None:
    support.check_support("signal")


def test_other_systems_are_told_what_works_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Refused, match=r"recording needs Linux, this is darwin; 'tachograph analyze' works here"):
        support.check_support("signal")


def test_other_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*uname[:4], "riscv64")))
    with pytest.raises(Refused, match=r"needs an x86-64 or aarch64 processor, this is riscv64; --sampler signal can"):
        support.check_support("native")
    support.check_support("signal")
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*uname[:4], "aarch64")))
    support.check_support("native")
    with pytest.raises(Refused, match=r"--redundancy needs an x86-64 processor, this is aarch64"):
        support.check_support("native", redundancy=True)


def test_other_c_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def confstr(_: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", confstr)
    assert support.why_not_native() == "it needs the C library glibc"


def test_free_threading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "abiflags", "t")
    assert support.why_not_native() == "this is a free-threaded Python"


def test_other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "NEWEST", (3, 10))
    reason = support.why_not_native()
    assert reason is not None
    assert "it knows CPython 3.11 to 3.10, this is 3." in reason


def test_the_build_reads_which_versions_are_supported() -> None:
    supported = runpy.run_path(str(Path(__file__).parents[3] / "cmake" / "recording_support.py"))["supported"]
    assert supported() == [OLDEST, NEWEST]


@pytest.mark.parametrize("folder", ["My Projects", "a:b", "$LIB"])
def test_a_path_that_the_loader_cannot_take(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str) -> None:
    """Every process of the tree would complain of a library that cannot be preloaded, and none be recorded."""
    place = tmp_path / folder
    place.mkdir()
    for part in ("libtachograph.so", *(f"_native{suffix}" for suffix in EXTENSION_SUFFIXES)):
        (place / part).touch()
    monkeypatch.setattr(tachograph.recorder, "__path__", [str(place)])
    with pytest.raises(Refused) as refused:
        support.check_support("native")
    assert f"it is installed in {place}, and the loader takes no library whose path has" in str(refused.value)
    assert str(refused.value).endswith("--sampler signal can")
    support.check_support("signal")

import os
import sys

import pytest

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
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*uname[:4], "aarch64")))
    with pytest.raises(Refused, match=r"needs an x86-64 processor, this is aarch64; --sampler signal can"):
        support.check_support("native")
    support.check_support("signal")


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
    assert "it knows CPython 3.11 to 3.15, this is 3." in reason

import os
import threading
import time
from collections.abc import Iterator

import pytest

from tachograph.recorder.inprocess.signal_sampler import BlockingCalls


@pytest.fixture
def execs() -> list[str]:
    return []


@pytest.fixture
def blocking(execs: list[str]) -> Iterator[BlockingCalls]:
    calls = BlockingCalls()
    calls.install(before_exec=lambda: execs.append("before"), exec_failed=lambda: execs.append("failed"))
    yield calls
    calls.remove()


def test_the_originals_come_back() -> None:
    before = threading.Thread.join, threading.Condition.wait, time.sleep, os.execv, os.execve
    calls = BlockingCalls()
    calls.install(before_exec=lambda: None, exec_failed=lambda: None)
    assert time.sleep is not before[2]
    assert time.sleep.__name__ == "sleep"
    calls.remove()
    assert (threading.Thread.join, threading.Condition.wait, time.sleep, os.execv, os.execve) == before


def test_what_the_program_has_patched_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = BlockingCalls()
    monkeypatch.setattr(time, "sleep", time.sleep)
    calls.install(before_exec=lambda: None, exec_failed=lambda: None)
    time.sleep = lambda _: None
    theirs = time.sleep
    calls.remove()
    assert time.sleep is theirs


def test_sleeping_threads_are_known(blocking: BlockingCalls) -> None:
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    deadline = time.monotonic() + 5
    while not blocking.is_sleeping(thread.ident) and time.monotonic() < deadline:
        pass
    assert blocking.is_sleeping(thread.ident)
    assert not blocking.is_sleeping(threading.get_ident())
    event.set()
    thread.join()
    assert not blocking.is_sleeping(thread.ident)


@pytest.mark.usefixtures("blocking")
def test_join_keeps_its_manners() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    with pytest.raises(RuntimeError, match="before it is started"):
        thread.join()
    thread.start()
    began = time.monotonic()
    thread.join(0.05)
    assert 0.045 < time.monotonic() - began < 2
    assert thread.is_alive()
    thread.join(0)
    thread.join(-1)
    release.set()
    thread.join(timeout=5)
    assert not thread.is_alive()
    with pytest.raises(RuntimeError, match="current thread"):
        threading.current_thread().join()


@pytest.mark.usefixtures("blocking")
def test_an_exec_that_fails_is_announced(execs: list[str]) -> None:
    with pytest.raises(FileNotFoundError):
        os.execv("/nonexistent", ["x"])
    assert execs == ["before", "failed"]

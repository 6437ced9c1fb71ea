import gc
import os
import threading

from tachograph.recorder import clock


def test_a_flag_is_seen_by_all_that_wait_for_it() -> None:
    flag = clock.Flag()
    seen: list[bool] = []
    waiting = [threading.Thread(target=lambda: seen.append(flag.wait(60))) for _ in range(4)]
    for each in waiting:
        each.start()
    while not flag.is_set():  # beside those that wait
        assert not flag.wait(0.001)
        flag.set()
        flag.set()
    for each in waiting:
        each.join()
    assert seen == [True] * 4
    flag.clear()
    assert not flag.is_set()
    assert not flag.wait(0.001)


def test_a_flag_leaves_no_descriptor() -> None:
    gc.collect()  # what earlier tests left has descriptors
    before = os.listdir("/proc/self/fd")
    flags = [clock.Flag() for _ in range(10)]
    flags.clear()
    assert os.listdir("/proc/self/fd") == before

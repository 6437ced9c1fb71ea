"""Other profilers: what is known of each, and how their results are read, from files as they write them."""

import cProfile
import json
from pathlib import Path
from typing import Any

import pytest

from harness import peers
from harness.errors import BenchmarkError
from harness.peers import LineTime
from peers import filprofiler, memory_profiler, profiling_sampling, py_spy, pyinstrument, scalene, viztracer

BIN = Path()


def test_every_peer_says_how_it_runs_and_arms_have_names_of_their_own() -> None:
    found = [peers.load(name) for name in peers.names()]
    arms = [arm for peer in found for arm in peer.arms]
    assert len(arms) == len(set(arms)) >= len(found) > 10
    for peer in found:
        assert all("{recording}" in template for template in (*peer.arms.values(), *peer.native.values()))
        assert set(peer.without_memory) | set(peer.slow) <= set(peer.arms)


def test_a_peer_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(BenchmarkError, match=r"'nobody'.*scalene"):
        peers.load("nobody")
    assert peers.chosen("") == []
    assert peers.chosen("a, b") == ["a", "b"]
    assert peers.chosen("all") == peers.names()


def test_nothing_seen_is_not_zero_percent() -> None:
    assert peers.shares({"f": 1.0, "g": 3.0}) == {"f": 25.0, "g": 75.0}
    with pytest.raises(ValueError, match="saw nothing"):
        peers.shares({})


def test_py_spy_counts_leaves(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_text("<module> (a b.py:1);f (a b.py:2) 30\n<module> (a b.py:1);f (a b.py:2);g (a b.py:9) 10\n", "utf-8")
    assert py_spy.functions(raw, BIN) == {"f": 75.0, "g": 25.0}


def test_pyinstrument_has_a_tree_of_which_self_is_no_function(tmp_path: Path) -> None:
    def frame(function: str, time: float, *children: dict[str, Any]) -> dict[str, Any]:
        return {"function": function, "time": time, "children": children}

    inner = frame("f", 3.0, frame("[self]", 1.0), frame("g", 2.0))
    session = tmp_path / "session"
    session.write_text(json.dumps({"root_frame": frame("main", 4.0, inner)}), "utf-8")
    assert pyinstrument.functions(session, BIN) == {"main": 25.0, "f": 25.0, "g": 50.0}


def test_viztracer_has_calls_of_which_those_of_c_functions_are_their_callers(tmp_path: Path) -> None:
    def call(name: str, start: float, took: float, thread: int = 1) -> dict[str, Any]:
        return {"ph": "X", "tid": thread, "ts": start, "dur": took, "name": name}

    calls = [call("g (a.py:9)", 1, 2), call("len", 1, 1), call("g (a.py:9)", 4, 3), call("f (a.py:1)", 0, 10)]
    calls += [call("f (a.py:1)", 20, 4), call("g (a.py:9)", 21, 6, thread=2)]
    named = {"ph": "M", "tid": 1, "name": "thread_name", "args": {"name": "MainThread"}}
    recording = tmp_path / "run"
    viztracer.written(recording).write_text(json.dumps({"traceEvents": [named, *calls]}), "utf-8")
    assert viztracer.functions(recording, BIN) == {"f": 45.0, "g": 55.0}


def test_pstats_has_own_times(tmp_path: Path) -> None:
    profile = cProfile.Profile()
    profile.runcall(sum, range(10_000))
    profile.dump_stats(tmp_path / "stats")
    found = peers.pstats_shares(tmp_path / "stats", BIN)
    assert found["<built-in method builtins.sum>"] > 50
    assert sum(found.values()) == pytest.approx(100)


def test_scalene_has_functions_in_files_and_no_footprint_where_nothing_was_large(tmp_path: Path) -> None:
    parts = {"n_cpu_percent_python": 30.0, "n_cpu_percent_c": 5.0, "n_sys_percent": 1.0}
    profile: dict[str, Any] = {"files": {"a.py": {"functions": [{"line": "f"} | parts]}}}
    (tmp_path / "x.json").write_text(json.dumps(profile), "utf-8")
    assert scalene.functions(tmp_path / "x.tacho", BIN) == {"f": 36.0}
    assert scalene.peak_bytes(tmp_path / "x.tacho", BIN) == 0
    (tmp_path / "x.json").write_text(json.dumps(profile | {"max_footprint_mb": 2.5}), "utf-8")
    assert scalene.peak_bytes(tmp_path / "x.tacho", BIN) == 2_621_440


def test_fil_sums_its_stacks_and_memory_profiler_takes_the_highest_line(tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "peak-memory.prof").write_text("a.py:1 (f);a.py:2 (g) 100\na.py:1 (f) 23\n", "utf-8")
    assert filprofiler.peak_bytes(tmp_path, BIN) == 123
    lines = tmp_path / "lines"
    lines.write_text(
        "Line #    Mem usage    Increment  Occurrences   Line Contents\n"
        "=============================================================\n"
        "     2   22.000 MiB   22.000 MiB           1   @profile\n"
        "     4   64.500 MiB   42.500 MiB           1       a = bytearray(1)\n"
        "     5   63.000 MiB   -1.500 MiB           1       del a\n",
        "utf-8",
    )
    assert memory_profiler.peak_bytes(lines, BIN) == round(64.5 * 2**20)


def test_a_peer_whose_interpreter_there_is_not_is_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert peers.peer_arms("profiling-sampling", tmp_path / "environments") == []
    assert "no python3.15 on PATH" in capsys.readouterr().err


def test_arms_come_with_the_bare_ones_that_they_are_compared_with(tmp_path: Path) -> None:
    environment = tmp_path / "profiling-sampling"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").touch()
    (environment / ".complete").touch()
    arms = peers.peer_arms("cprofile,profiling-sampling", tmp_path)
    assert [(arm.name, arm.against) for arm in arms] == [
        ("bare, python3.15", "bare, python3.15"),
        ("profiling.sampling", "bare, python3.15"),
        ("bare, brief", "bare, brief"),
        ("cProfile", "bare, brief"),
    ]
    assert {arm.name for arm in arms if arm.brief} == {"bare, brief", "cProfile"}


def test_profiling_sampling_has_stacks_in_its_replay(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'tid:7;<frozen runpy>:_run_code:87;a.py:<module>:8;a.py:f:4 51\n"
        'tid:7;a.py:<module>:8;json.py:loads:9 49\' > "$6"\n',
        "utf-8",
    )
    python.chmod(0o755)
    recording = tmp_path / "recording"
    assert profiling_sampling.functions(recording, tmp_path) == {"f": 51.0, "loads": 49.0}
    assert profiling_sampling.lines(recording, tmp_path, Path("a.py")) == {4: LineTime(51.0), 8: LineTime(49.0)}

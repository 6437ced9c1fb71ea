"""What the surveys make of answers: from answers made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import copy_volume
import delay_simulation
import leak_detection
import line_accuracy
import live_bytes
import native_share
import samplers
from harness import peers, tags
from harness.peers import LineTime
from peers import austin, pprofile, py_spy, scalene
from programs.leaking import INNOCENTS, LEAKS

BIN = Path()
PROGRAM = Path("prog.py")


def test_lines_are_known_by_their_tags(tmp_path: Path) -> None:
    program = tmp_path / "p.py"
    program.write_text("a = 1  # @one\nb = 2  # @two\nc = 3  # @one\nd = '# @no'\n", "utf-8")
    assert tags.tagged(program) == {"one": [1, 3], "two": [2]}
    assert tags.sums({1: 2.0, 3: 5.0, 4: 7.0}, program) == {"one": 7.0, "two": 0.0}


def test_a_stack_counts_for_its_innermost_line_of_the_program() -> None:
    stacks = [([("/x/prog.py", 1), ("/x/prog.py", 2), ("/lib/json.py", 9)], 3.0), ([("/lib/json.py", 1)], 5.0)]
    assert peers.innermost(stacks, PROGRAM) == {2: 3.0}


def test_peers_tell_lines_as_they_write_them(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("<module> (prog.py:1);f (prog.py:2);loads (json/x.py:7) 30\n", "utf-8")
    assert py_spy.lines(file, BIN, PROGRAM) == {2: LineTime(30.0)}
    file.write_text("# mode: wall\nP1;T0:2;/x/prog.py:<module>:1;/x/prog.py:f:4 5000\n", "utf-8")
    assert austin.lines(file, BIN, PROGRAM) == {4: LineTime(5000.0)}
    file.write_text(
        "events: hits microseconds\nfl=prog.py\nfn=f\n4 2 10\ncalls=1 1\n4 1 20\nfl=other.py\n4 1 9\n", "utf-8"
    )
    assert pprofile.lines(file, BIN, PROGRAM) == {4: LineTime(30.0)}
    file.write_text("events: hits microseconds usphit\nfl=/x/prog.py\nfn=f:1\n4 2 0 0\ncalls=1 1\n4 1 0 0\n", "utf-8")
    assert pprofile.lines(file, BIN, PROGRAM) == {4: LineTime(3.0)}
    (tmp_path / "out.json").write_text(
        '{"files": {"/x/prog.py": {"lines": [{"lineno": 3, "n_cpu_percent_python": 1.0, "n_cpu_percent_c": 2.0, '
        '"n_sys_percent": 4.0, "n_peak_mb": 1.0, "n_copy_mb_s": 2.0}], "leaks": {"3": {}}}}, "elapsed_time_sec": 3.0}',
        "utf-8",
    )
    assert scalene.lines(file, BIN, PROGRAM) == {3: LineTime(7.0, 6.0)}
    assert scalene.live_bytes(file, BIN, PROGRAM) == {3: 2.0**20}
    assert scalene.copied_bytes(file, BIN, PROGRAM) == {3: 6.0 * 2**20}
    assert scalene.leaks(file, BIN, PROGRAM) == [3]


def test_time_on_the_wrong_line_is_counted_once() -> None:
    bare = dict.fromkeys(line_accuracy.SECTIONS, 1.0) | {"read": 0.0}
    told = bare | {"python": 2.0, "call": 0.0}
    slowed = bare | {"python": 7.0}
    known: dict[str, dict[str, Any]] = {
        "sections bare": {"report": bare},
        "again bare": {"report": bare | {"thread": 0.4, "call": 1.6}},
        "sections a": {"report": bare, "said": {"total": told, "native": told}},
        "sections b": {"report": bare, "said": None, "outcome": "never ended"},
        "sections c": {"report": slowed, "said": {"total": slowed}},
    }
    assert line_accuracy.errors(known, "a") == pytest.approx(100 / 6)
    assert line_accuracy.errors(known, "b") is None
    assert line_accuracy.errors(known, "c") == pytest.approx(0.0), "it tells what it has made of the program"
    assert line_accuracy.moved(known, "a") == 0.0
    assert line_accuracy.moved(known, "c") == pytest.approx(700 / 12 - 100 / 6)
    assert line_accuracy.noise(known) == pytest.approx(10.0)
    text = line_accuracy.table(known, ["a", "b", "c", "d"])
    assert "never ended" in text
    assert "16.7" in text


def test_native_shares_are_compared_with_the_truth() -> None:
    known: dict[str, dict[str, Any]] = {
        "50 bare": {"report": {"python": 1.0, "native": 1.0}},
        "50 a": {"report": {"python": 3.0, "native": 2.0}, "said": {"total": 10.0, "native": 8.0}},
        "50 b": {"report": {"python": 1.0, "native": 1.0}, "said": {"total": 0.0, "native": 0.0}, "outcome": "ended"},
    }
    assert native_share.errors(known, "a") == {50: 40.0}, "against what was measured in its own run"
    assert native_share.errors(known, "b") == {}
    assert "+40.0" in native_share.table(known, ["a", "b"])


def test_bytes_are_compared_line_by_line() -> None:
    truth = dict.fromkeys(live_bytes.NAMES, 100)
    said = truth | {"dicts": 150}
    known: dict[str, dict[str, Any]] = {"small objects a": {"said": said, "truth": truth}}
    assert live_bytes.errors(known, "a")["dicts"] == 50.0
    assert "+50.00 %" in live_bytes.table(known, ["a", "b"])
    copied = dict.fromkeys(copy_volume.NAMES, 10)
    known = {"copies a": {"said": copied | {"view": 5}, "report": copied}}
    assert copy_volume.errors(known, "a")["view"] == -50.0
    assert copy_volume.errors(known, "b") == {}


def test_verdicts_on_leaks() -> None:
    (line,) = leak_detection.GUILTY["growing_list"]
    assert leak_detection.verdict("growing_list", [line]) == "found"
    assert leak_detection.verdict("growing_list", [line, 1]) == "found, 1 false"
    assert leak_detection.verdict("growing_list", []) == "missed"
    assert leak_detection.verdict("sawtooth", []) == "quiet"
    assert leak_detection.verdict("sawtooth", [line]) == "1 false"
    known: dict[str, dict[str, Any]] = {f"{way} a": {"said": leak_detection.GUILTY[way]} for way in LEAKS}
    assert leak_detection.wrong(known, "a") is None
    known |= {f"{way} a": {"said": []} for way in INNOCENTS}
    assert leak_detection.wrong(known, "a") == 0
    known["cycles a"] = {"said": []}
    assert leak_detection.wrong(known, "a") == 1


def test_the_delay_of_signals_tells_long_phases_and_not_short_ones() -> None:
    one_long_phase = np.array([[0.0, 1.0]])
    assert delay_simulation.estimate(one_long_phase) == pytest.approx([0.01, 0.99])
    only_python = np.array([[1.0, 0.0]])
    assert delay_simulation.estimate(only_python) == pytest.approx([1.0, 0.0], abs=0.011)
    short = delay_simulation.pieces(np.array([[1.0, 1.0]]), delay_simulation.SHORT_PHASE_S)
    python, native = delay_simulation.estimate(short)
    assert native < 0.2 < 1.5 < python
    drawn = delay_simulation.draw(8.0, np.random.default_rng(1))
    assert drawn.shape == (delay_simulation.LINES, 2)
    assert drawn.sum() == pytest.approx(8.0)


def test_a_split_without_samples_is_unknown() -> None:
    assert samplers.python_share({"python_s": 1.0, "cpu_s": 4.0}) == 25.0
    assert samplers.python_share({"python_s": 0.0, "cpu_s": 0.0}) is None
    text = samplers.table([samplers.Split("p", 50.0, 60.0, {}), samplers.Split("q", None, 1.0, {})])
    assert "+10.0" in text
    assert "no samples" in text

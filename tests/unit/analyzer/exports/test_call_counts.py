"""Numbers of calls in the formats that can carry them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gprof2dot
import pytest

from tachograph.analyzer import Recording
from tachograph.analyzer.exports import FORMATS, Metric, Options, prepare
from unit.analyzer.exports.conftest import pprof_module
from unit.analyzer.recordings import MS, START, Builder
from unit.analyzer.test_calls import drawn, period

Writes = Callable[..., bytes]


@pytest.fixture
def export(tmp_path: Path) -> Writes:
    """`slow` was called eight times, `leaf` some 1.2 million times and never sampled, `other` was not watched."""
    builder = Builder(tmp_path / "run.tacho")
    file = builder.file("/srv/app.py")
    slow, leaf = (builder.stack((builder.code(file, name, line), None)) for name, line in (("slow", 1), ("leaf", 4)))
    running = builder.stack((0, 2), (builder.code(file, "other", 7), 8))
    for number in range(10):
        builder.cpu(running, time_ns=START + (number + 1) * 900 * MS)
    period(builder, slow, 10, 10, calls=8, ended=8, total_ns=80 * MS, longest_ns=10 * MS)
    seen = {"calls": 12_000, "ended": 12_000, "total_ns": 3_720_000, "watched_ns": 100 * MS}
    period(builder, leaf, 10, 10, **seen, **drawn([(120, 0.001)] * 100))
    builder.write()

    def export(format_name: str, **part: Any) -> bytes:
        out = io.BytesIO()
        with Recording.open(builder.path) as recording:
            FORMATS[format_name].write(prepare(recording, Metric.CPU, **part), Options(), out)
        return out.getvalue()

    return export


def sums(profile: Any, kind: str) -> dict[str, int]:
    """The sums of the values of one sample type, by innermost function."""
    text = profile.string_table
    place = [text[each.type] for each in profile.sample_type].index(kind)
    functions = {each.id: text[each.name] for each in profile.function}
    names = {each.id: functions[each.line[0].function_id] for each in profile.location}
    found: dict[str, int] = {}
    for sample in profile.sample:
        name = names[sample.location_id[0]]
        found[name] = found.get(name, 0) + sample.value[place]
    return {name: value for name, value in found.items() if value}


def test_pprof_has_calls_as_a_sample_type(export: Writes, tmp_path: Path) -> None:
    profile = pprof_module(tmp_path).Profile()
    profile.ParseFromString(gzip.decompress(export("pprof")))
    assert sums(profile, "calls") == {"slow": 8, "leaf": 1_200_000}
    assert set(sums(profile, "cpu")) == {"other"}
    assert {len(sample.value) for sample in profile.sample} == {3}


def test_calls_of_one_thread_are_not_known(export: Writes, tmp_path: Path) -> None:
    profile = pprof_module(tmp_path).Profile()
    profile.ParseFromString(gzip.decompress(export("pprof", thread="main")))
    assert [profile.string_table[each.type] for each in profile.sample_type] == ["samples", "cpu"]


def test_callgrind_has_calls_as_an_event(export: Writes) -> None:
    text = export("callgrind").decode()
    lines = text.splitlines()
    assert "events: cpu Calls" in lines
    whole = next(line for line in lines if line.startswith("summary:")).split()
    assert int(whole[2]) == 1_200_008
    assert lines[-1] == "totals: " + " ".join(whole[1:])
    of = {
        name: lines[lines.index(next(line for line in lines if line.endswith(f") {name}"))) + 1]
        for name in ("slow", "leaf")
    }
    assert of == {"slow": "1 0 8", "leaf": "4 0 1200000"}
    profile = gprof2dot.CallgrindParser(io.StringIO(text)).parse()
    assert {"slow", "leaf", "other"} <= {each.name for each in profile.functions.values()}

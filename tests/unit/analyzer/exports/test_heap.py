"""``--metric heap``: Go's four types in one file, read by the parser that protoc makes of pprof's own profile.proto."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer import Recording
from tachograph.analyzer.exports import FORMATS, Metric, Options, prepare
from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export, pprof_module
from unit.analyzer.recordings import Builder

TYPES = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module that protoc makes."""
    return pprof_module(tmp_path_factory.mktemp("pprof"))


def parsed(parser: Any, data: bytes) -> Any:
    profile = parser.Profile()
    profile.ParseFromString(gzip.decompress(data))
    return profile


def own(profile: Any) -> dict[str, Counter[str]]:
    """By type, what the innermost functions have of it."""
    text = profile.string_table
    functions = {function.id: text[function.name] for function in profile.function}
    names = {location.id: functions[location.line[0].function_id] for location in profile.location}
    found = {}
    for number, kind in enumerate(profile.sample_type):
        found[text[kind.type]] = Counter[str]()
        for sample in profile.sample:
            found[text[kind.type]][names[sample.location_id[0]]] += sample.value[number]
    return {kind: +counts for kind, counts in found.items()}


def test_a_heap_has_what_was_allocated_and_what_was_held_at_the_peak(export: Export, parser: Any) -> None:
    profile = parsed(parser, export("pprof", "live", heap=True))
    text = profile.string_table
    assert [text[each.type] for each in profile.sample_type] == TYPES
    assert [text[each.unit] for each in profile.sample_type] == ["count", "bytes"] * 2
    assert text[profile.default_sample_type] == "inuse_space"
    assert own(profile) == {
        "alloc_objects": {"work": 2, "fib": 1},
        "alloc_space": program.ALLOCATED.own,
        "inuse_objects": {"work": 1, "fib": 1},
        "inuse_space": program.LIVE.own,
    }


def test_at_the_end(export: Export, parser: Any) -> None:
    found = own(parsed(parser, export("pprof", "end", heap=True)))
    assert found["inuse_objects"] == {"work": 1}
    assert found["inuse_space"] == program.END.own
    assert found["alloc_space"] == program.ALLOCATED.own


def test_a_sampled_block_stands_for_others(tmp_path: Path, parser: Any) -> None:
    made = Builder(tmp_path / "run.tacho", parameters={"block_mean_bytes": 512})
    stack = made.stack((made.code(made.file("/srv/app.py"), "work", 1), 0))
    made.memory("start", 0, 0)
    made.block(stack, 100, 10, mean=512, weight_bytes=700)
    made.memory("end", 10_000, 700, peak_bytes=700, obj_allocated_bytes=700)
    made.write()
    with Recording.open(tmp_path / "run.tacho") as recording:
        out = io.BytesIO()
        FORMATS["pprof"].write(prepare(recording, Metric.LIVE, heap=True), Options(), out)
    profile = parsed(parser, out.getvalue())
    assert own(profile) == {
        "alloc_objects": {"work": 7},
        "alloc_space": {"work": 700},
        "inuse_objects": {"work": 7},
        "inuse_space": {"work": 700},
    }
    assert profile.string_table[profile.period_type.type] == "space"
    assert profile.period == 512


def test_a_window_has_its_own_time(export: Export, parser: Any) -> None:
    profile = parsed(parser, export("pprof", "live", heap=True, start_s=1.5, end_s=4.0))
    assert profile.time_nanos == 1_700_000_001_500_000_000
    assert profile.duration_nanos == 2_500 * program.MS
    assert own(profile)["alloc_space"] == {}

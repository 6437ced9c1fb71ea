"""pprof's files, read by the parser that protoc makes of pprof's own profile.proto, and by go tool pprof."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export, pprof_module


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module that protoc makes."""
    return pprof_module(tmp_path_factory.mktemp("pprof"))


def parsed(parser: Any, data: bytes) -> Any:
    profile = parser.Profile()
    profile.ParseFromString(gzip.decompress(data))
    return profile


def weights(profile: Any) -> tuple[Counter[str], Counter[str]]:
    """Self and total weights by function, of the last sample type."""
    text = profile.string_table
    functions = {function.id: text[function.name] for function in profile.function}
    names = {location.id: functions[location.line[0].function_id] for location in profile.location}
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for sample in profile.sample:
        stack = [names[location] for location in sample.location_id]
        own[stack[0]] += sample.value[-1]
        for name in set(stack):
            total[name] += sample.value[-1]
    return own, total


@pytest.mark.parametrize(("metric", "truth"), program.EVERY)
def test_the_parser_reads_what_was_recorded(export: Export, parser: Any, metric: str, truth: program.Truth) -> None:
    profile = parsed(parser, export("pprof", metric))
    assert weights(profile) == (truth.own, truth.total)
    text = profile.string_table
    assert text[0] == ""
    assert [(text[each.type], text[each.unit]) for each in profile.sample_type] == [
        ("samples", "count"),
        (metric, "nanoseconds" if metric in ("cpu", "wait") else "bytes"),
    ]
    assert text[profile.default_sample_type] == metric


def test_times_lines_and_labels(export: Export, parser: Any) -> None:
    profile = parsed(parser, export("pprof", native=True))
    text = profile.string_table
    assert profile.time_nanos == 1_700_000_000_000_000_000
    assert profile.duration_nanos == 10_000 * program.MS
    assert profile.period == 10 * program.MS
    work = {function.id: function for function in profile.function if text[function.name] == "work"}
    assert {text[function.filename] for function in work.values()} == {"/srv/app/app.py"}
    lines = {line.line for location in profile.location for line in location.line if line.function_id in work}
    assert lines == {11, 12}
    files = {mapping.id: text[mapping.filename] for mapping in profile.mapping}
    deflate = [function.id for function in profile.function if text[function.name] == "deflate"]
    modules = [files[each.mapping_id] for each in profile.location if each.line[0].function_id in deflate]
    assert modules == ["/usr/lib/libz.so"]
    labels = {text[label.key]: text[label.str] or label.num for label in profile.sample[-1].label}
    assert labels == {"thread": "pool-1", "process": "program.py", "tid": 101, "pid": 100}


def test_every_field_is_one_that_the_format_has(export: Export, parser: Any) -> None:
    from google.protobuf import unknown_fields

    profile = parsed(parser, export("pprof"))
    for message in (profile, *profile.sample, *profile.location, *profile.function, *profile.mapping):
        assert list(unknown_fields.UnknownFieldSet(message)) == []


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_go_tool_pprof_reads_it(export: Export, tmp_path: Path) -> None:
    file = tmp_path / "run.pb.gz"
    file.write_bytes(export("pprof"))
    command = ["go", "tool", "pprof", "-top", "-unit=ms", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    rows = {
        line.split(maxsplit=5)[5]: line.split()[0] for line in told.splitlines()[5:] if "%" in line and "ms" in line
    }
    assert rows["fib"] == "60ms"
    assert rows["work"] == "35ms"

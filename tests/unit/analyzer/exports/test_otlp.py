"""OpenTelemetry's files, read by the messages of the pinned package opentelemetry-proto."""

from __future__ import annotations

import enum
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tachograph.analyzer import Recording
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.exports import FORMATS, Metric, Options, otlp_fields, prepare
from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export
from unit.analyzer.recordings import Builder

OURS = [
    each
    for each in vars(otlp_fields).values()
    if isinstance(each, type) and issubclass(each, enum.IntEnum) and each is not enum.IntEnum
]


def test_fields_have_the_numbers_of_the_pinned_release() -> None:
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
    from opentelemetry.proto.common.v1 import common_pb2
    from opentelemetry.proto.profiles.v1development import profiles_pb2
    from opentelemetry.proto.resource.v1 import resource_pb2

    modules = (profiles_pb2, common_pb2, resource_pb2, profiles_service_pb2)
    assert len(OURS) > 20
    for message in OURS:
        (theirs,) = [getattr(module, message.__name__) for module in modules if hasattr(module, message.__name__)]
        numbers = {field.name.upper(): field.number for field in theirs.DESCRIPTOR.fields}
        assert {each.name: each.value for each in message}.items() <= numbers.items(), message.__name__
    request = profiles_service_pb2.ExportProfilesServiceRequest.DESCRIPTOR.fields
    assert {field.name.upper(): field.number for field in request} == {
        each.name: each.value for each in otlp_fields.ProfilesData
    }


def parsed(data: bytes) -> Any:
    from opentelemetry.proto.profiles.v1development import profiles_pb2

    found = profiles_pb2.ProfilesData()
    found.ParseFromString(data)
    return found


def profiles(data: Any) -> dict[str, list[Any]]:
    """Profiles by their type."""
    text = data.dictionary.string_table
    found: dict[str, list[Any]] = {}
    for resource in data.resource_profiles:
        (scope,) = resource.scope_profiles
        for profile in scope.profiles:
            found.setdefault(text[profile.sample_type.type_strindex], []).append(profile)
    return found


def weights(data: Any, kind: str) -> tuple[Counter[str], Counter[str]]:
    """Self and total weights by function."""
    tables = data.dictionary
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for profile in profiles(data)[kind]:
        for sample in profile.samples:
            (value,) = sample.values
            lines = [
                tables.location_table[index].lines[0]
                for index in tables.stack_table[sample.stack_index].location_indices
            ]
            names = [tables.string_table[tables.function_table[line.function_index].name_strindex] for line in lines]
            own[names[0]] += value
            for name in set(names):
                total[name] += value
    return own, total


@pytest.mark.parametrize(("metric", "truth"), program.EVERY)
def test_the_parser_reads_what_was_recorded(export: Export, metric: str, truth: program.Truth) -> None:
    data = parsed(export("otlp", metric))
    kind = {"wait": "off_cpu"}.get(metric, metric)
    assert weights(data, kind) == (truth.own, truth.total)
    # What is shown by default comes first.
    assert [*profiles(data)] == [kind, "samples"]


@pytest.mark.parametrize(("metric", "held"), [("live", program.LIVE), ("end", program.END)])
def test_heaps(export: Export, metric: str, held: program.Truth) -> None:
    data = parsed(export("otlp", metric, heap=True))
    assert [*profiles(data)] == ["inuse_space", "alloc_objects", "alloc_space", "inuse_objects"]
    assert weights(data, "inuse_space")[0] == held.own
    assert weights(data, "alloc_space")[0] == program.ALLOCATED.own
    assert weights(data, "alloc_objects")[0] == {"work": 2, "fib": 1}


def test_sums_are_those_of_the_json(export: Export, recording: Recording) -> None:
    answer = CliRunner().invoke(analyze, [str(recording.path), "--scope", "all", "--json", "-"])
    document = json.loads(answer.stdout)

    def whole(kind: str, metric: str, *, heap: bool = False) -> int:
        return sum(weights(parsed(export("otlp", metric, heap=heap)), kind)[0].values())

    assert whole("cpu", "cpu") == round(document["totals"]["cpu_s"] * 1e9)
    memory, lines = document["memory"], document["lines"]
    assert whole("alloc_space", "live", heap=True) == sum(line["allocated_bytes"] for line in lines) == 3500
    assert whole("inuse_space", "live", heap=True) == memory["peak_bytes"] == 3000
    assert whole("inuse_space", "end", heap=True) == memory["end_bytes"] == 1000


def test_every_field_is_one_that_the_format_has(export: Export) -> None:
    from google.protobuf import unknown_fields

    def check(message: Any) -> int:
        assert list(unknown_fields.UnknownFieldSet(message)) == []
        inner = 0
        for field, value in message.ListFields():
            if field.message_type is not None:
                inner += sum(map(check, [value] if hasattr(value, "ListFields") else value))
        return 1 + inner

    assert check(parsed(export("otlp", native=True))) > 100


def test_tables_begin_with_zero_values_and_hold_nothing_twice_or_in_vain(export: Export) -> None:
    data = parsed(export("otlp", native=True))
    tables = data.dictionary
    for table in (
        tables.mapping_table,
        tables.location_table,
        tables.function_table,
        tables.attribute_table,
        tables.stack_table,
    ):
        assert table[0] == type(table[0])()
        encoded = [each.SerializeToString(deterministic=True) for each in table]
        assert len(set(encoded)) == len(encoded) > 1
    assert tables.string_table[0] == ""
    assert len(set(tables.string_table)) == len(tables.string_table)
    (link,) = tables.link_table
    assert (link.trace_id, link.span_id) == (bytes(16), bytes(8))

    samples = [sample for each in profiles(data).values() for profile in each for sample in profile.samples]
    stacks = {sample.stack_index for sample in samples}
    locations = {index for stack in stacks for index in tables.stack_table[stack].location_indices}
    attributes = {index for sample in samples for index in sample.attribute_indices} | {
        index for location in locations for index in tables.location_table[location].attribute_indices
    }
    used = {
        "stack_table": stacks,
        "location_table": locations,
        "attribute_table": attributes,
        "function_table": {tables.location_table[each].lines[0].function_index for each in locations},
        "mapping_table": {tables.location_table[each].mapping_index for each in locations} - {0},
    }
    for name, numbers in used.items():
        assert numbers == {*range(1, len(getattr(tables, name)))}, name


def attributes(pairs: Any) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = [each.string_value for each in value.values] if kind == "array_value" else value
    return found


def test_resources_are_processes(tmp_path: Path) -> None:
    made = Builder(
        tmp_path / "run.tacho",
        host="node7",
        argv=("shop.py", "--port", "80"),
        labels={"service.name": "shop", "deployment.environment.name": "test"},
    )
    stack = made.stack((made.code(made.file("/srv/app.py"), "work", 1), 3))
    _, main = made.process(4242, 0, 500)
    made.cpu(stack, 10)
    made.cpu(stack, 5, thread=main)
    made.write()
    with Recording.open(tmp_path / "run.tacho") as recording:
        out, again = io.BytesIO(), io.BytesIO()
        for each in (out, again):
            FORMATS["otlp"].write(prepare(recording, Metric.CPU), Options(), each)
    # A receiver can tell that it got the same twice.
    assert out.getvalue() == again.getvalue()
    data = parsed(out.getvalue())
    first, second = (attributes(each.resource.attributes) for each in data.resource_profiles)
    assert first == {
        "service.name": "shop",
        "deployment.environment.name": "test",
        "host.name": "node7",
        "process.pid": 100,
        "process.executable.name": "shop.py",
        "process.executable.path": "/usr/bin/python3.13",
        "process.command_args": ["shop.py", "--port", "80"],
        "process.runtime.name": "cpython",
        "process.runtime.version": first["process.runtime.version"],
    }
    assert second["process.pid"] == 4242
    ids = {profile.profile_id for each in profiles(data).values() for profile in each}
    assert len(ids) == 4
    assert {len(each) for each in ids} == {16}
    (scope,) = {(each.scope_profiles[0].scope.name) for each in data.resource_profiles}
    assert scope == "tachograph"


@pytest.mark.parametrize(
    ("labels", "service"),
    [({}, "orders"), ({"service": "shop"}, "shop"), ({"service.name": "shop"}, "shop"), ({"rank": "1"}, "orders")],
)
def test_a_program_names_its_service_unless_a_label_does(tmp_path: Path, labels: dict[str, str], service: str) -> None:
    made = Builder(tmp_path / "run.tacho", labels=labels)
    made.cpu(made.stack((made.code(made.file("/srv/app.py"), "work", 1), 3)), 10)
    made.rows["processes"][0]["resource"] = '{"service.name": "orders", "k8s.pod.name": "orders-5f3c", "cloud.zone": 7}'
    made.process(4242, 0, 500, resource="no JSON")
    made.write()
    with Recording.open(tmp_path / "run.tacho") as recording:
        out = io.BytesIO()
        FORMATS["otlp"].write(prepare(recording, Metric.CPU), Options(), out)
    first, *_ = (attributes(each.resource.attributes) for each in parsed(out.getvalue()).resource_profiles)
    assert {name: first[name] for name in ("service.name", "k8s.pod.name", "cloud.zone")} == {
        "service.name": service,
        "k8s.pod.name": "orders-5f3c",
        "cloud.zone": 7,
    }


def test_times_lines_and_threads(export: Export) -> None:
    data = parsed(export("otlp", native=True))
    tables = data.dictionary
    text = tables.string_table
    (profile,) = profiles(data)["cpu"]
    assert profile.time_unix_nano == 1_700_000_000_000_000_000
    assert profile.duration_nano == 10_000 * program.MS
    assert profile.period == 10 * program.MS
    assert text[profile.period_type.unit_strindex] == "nanoseconds"
    functions = {text[each.name_strindex]: (number, each) for number, each in enumerate(tables.function_table)}
    number, work = functions["work"]
    assert text[work.filename_strindex] == "/srv/app/app.py"
    assert {line.line for each in tables.location_table for line in each.lines if line.function_index == number} == {
        11,
        12,
    }
    number, _ = functions["deflate"]
    (location,) = [each for each in tables.location_table if each.lines and each.lines[0].function_index == number]
    assert text[tables.mapping_table[location.mapping_index].filename_strindex] == "/usr/lib/libz.so"
    kinds = {
        text[tables.attribute_table[each].key_strindex]: tables.attribute_table[each].value.string_value
        for each in location.attribute_indices
    }
    assert kinds == {"profile.frame.type": "native"}
    threads = {
        tuple(
            tables.attribute_table[each].value.string_value or tables.attribute_table[each].value.int_value
            for each in sample.attribute_indices
        )
        for sample in profile.samples
    }
    assert threads == {("MainThread", 100), ("pool-1", 101)}


def test_nothing_at_all(tmp_path: Path) -> None:
    Builder(tmp_path / "run.tacho").write()
    with Recording.open(tmp_path / "run.tacho") as recording:
        out = io.BytesIO()
        FORMATS["otlp"].write(prepare(recording, Metric.CPU), Options(), out)
    data = parsed(out.getvalue())
    assert len(data.resource_profiles) == 0
    assert len(data.dictionary.string_table) == 1


def test_samples_link_to_the_trace_and_span_that_they_were_in(tmp_path: Path) -> None:
    """Of a request whose steps are spans of the program's, which know no trace."""
    trace = "0af7651916cd43dd8448eb211c80319c"
    builder = Builder(tmp_path / "r.tacho")
    builder.rows["processes"][0]["spans_followed"] = True
    stack = builder.stack((builder.code(builder.file("program.py", "pass\n" * 9)), 0))
    builder.span("GET /a", 0, 200, f'{{"trace_id": "{trace}", "span_id": "b7ad6b7169203331"}}')
    builder.span("step", 5, 205, parent=0)
    builder.span("GET /b", 30, 150, f'{{"trace_id": "{trace}", "span_id": "00f067aa0ba902b7"}}')
    builder.span("GET /odd", 31, 150, '{"trace_id": "17", "span_id": null}')
    for span in (0, 1, 1, 2, 3, None):
        builder.cpu(stack)
        builder.rows["cpu"][-1]["span"] = span
    out = io.BytesIO()
    with Recording(builder.write()) as recording:
        FORMATS["otlp"].write(prepare(recording, Metric.CPU), Options(), out)
    data = parsed(out.getvalue())
    links = [(each.trace_id.hex(), each.span_id.hex()) for each in data.dictionary.link_table]
    assert links == [("0" * 32, "0" * 16), (trace, "b7ad6b7169203331"), (trace, "00f067aa0ba902b7")]
    found = {links[each.link_index][1]: each.values[0] for each in profiles(data)["cpu"][0].samples}
    assert found == {"0" * 16: 20_000_000, "b7ad6b7169203331": 30_000_000, "00f067aa0ba902b7": 10_000_000}

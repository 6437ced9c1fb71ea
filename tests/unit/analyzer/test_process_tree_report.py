"""The tree of processes as people see it: in the terminal, in exports, and in a scrubbed copy."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Question, Recording, build_profile, exports
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.commands.common import complete_process
from tachograph.analyzer.exports import Metric
from tachograph.analyzer.exports.scrub import make_request, scrub
from tachograph.analyzer.render.terminal.process_lines import show
from tachograph.analyzer.report_data.numbers import counted
from unit.analyzer.recordings import MS, START, Builder

PROGRAM = "python app.py --password x"


@pytest.fixture
def tree(builder: Builder) -> Builder:
    """A shell that runs a program with a worker, and many compilers."""
    stack = builder.stack((builder.code(builder.file("/srv/app.py")), 0))
    builder.rows["processes"][0] |= {"origin": "first", "command": PROGRAM, "user_ns": 90 * MS, "exit_status": 0}
    worker, thread = builder.process(101, 10, 900, user_ns=MS, system_ns=2 * MS, exit_status=-11)
    builder.process(102, 20, 900, recorded="native", origin="exec", command="/opt/python3.10 tool.py", parent=worker)
    for number in range(20):
        values = {"recorded": "listed", "origin": "exec", "command": "/usr/bin/cc1 -O2", "parent": worker}
        builder.process(200 + number, 100 + number, 105 + number, system_ns=number * MS, exit_status=0, **values)
    builder.cpu(stack, 60)
    builder.cpu(stack, 30, thread=thread, native_frame=None, time_ns=START + 500 * MS)
    return builder


def shown(builder: Builder, encoding: str = "utf-8", **question: object) -> list[str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with Recording(builder.write()) as recording:
        show(build_profile(recording, Question(**question)), Console(file=out, width=120))  # type: ignore[arg-type]
    out.seek(0)
    text = out.read()
    return text[text.index(" Processes ") :].rstrip().split("\n")[2:]


def test_the_tree(tree: Builder) -> None:
    assert [" ".join(line.split()) for line in shown(tree)] == [
        "10.0s 90ms ? 1 0 app.py 100 id=0",
        "890ms 1ms 2ms 1 SIGSEGV └─ app.py 101 id=1 · fork",
        "880ms ? ? ? ├─ tool.py 102 id=2 · without Python stacks",
        "5ms ? 17ms 0 ├─ cc1 217 id=20 · not recorded",
        "5ms ? 18ms 0 ├─ cc1 218 id=21 · not recorded",
        "5ms ? 19ms 0 ├─ cc1 219 id=22 · not recorded",
        "85ms ? 136ms └─ and 17 more of cc1",
        "? not known: the kernel reports it at the end",
    ]


def test_the_tree_without_unicode_and_from_the_middle(tree: Builder) -> None:
    found = shown(tree, "ascii", processes=("101", "102", "219"))
    assert [line.strip().split("  ")[-1] for line in found] == [
        "app.py 101 id=1 - fork",
        "|- tool.py 102 id=2 - without Python stacks",
        "`- cc1 219 id=22 - not recorded",
        "? not known: the kernel reports it at the end",
    ]


def test_the_command(tree: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write()
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(analyze, ["run.tacho", "--processes"]).output
    assert "3 processes (1 without Python stacks, 20 more not recorded)" in " ".join(said.split())
    assert "SIGSEGV" in said
    found = json.loads(CliRunner().invoke(analyze, ["run.tacho", "--process", "101", "--json", "-"]).output)
    assert [(each["name"], each["exit_status"]) for each in found["processes"]] == [("app.py", -11)]
    assert found["question"]["processes"] == ["101"]
    assert found["totals"]["cpu_s"] == 0.03
    refused = CliRunner().invoke(analyze, ["run.tacho", "--process", "nobody"])
    assert (refused.exit_code, refused.output.count("\n")) == (2, 1)


def test_completion_knows_the_processes(tree: Builder) -> None:
    import click

    context = click.Context(analyze)
    context.params["recording"] = str(tree.write())
    option = next(each for each in analyze.params if each.name == "process")
    assert [(item.value, item.help) for item in complete_process(context, option, "tool")] == [("tool.py", "")]
    assert [(item.value, item.help) for item in complete_process(context, option, "102")] == [("102", "tool.py")]
    context.params["recording"] = "missing.tacho"
    assert complete_process(context, option, "") == []


def test_an_export_of_one_process(tree: Builder) -> None:
    def collapsed(*process: str) -> bytes:
        out = io.BytesIO()
        extract = exports.prepare(recording, Metric.CPU, process=process)
        exports.FORMATS["collapsed"].write(extract, exports.Options(), out)
        return out.getvalue()

    with Recording(tree.write()) as recording:
        assert collapsed() == b"f (app.py:1) 90000000\n"
        assert collapsed("101") == collapsed("id=1") == b"f (app.py:1) 30000000\n"


def test_perfetto_has_the_tree(tree: Builder) -> None:
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    out = io.BytesIO()
    with Recording(tree.write()) as recording:
        exports.FORMATS["perfetto"].write(exports.prepare(recording, Metric.CPU), exports.Options(), out)
    trace = trace_pb2.Trace.FromString(out.getvalue())
    (known,) = [packet.process_tree for packet in trace.packet if packet.HasField("process_tree")]
    assert len(known.processes) == 23
    assert list(known.processes[2].cmdline) == ["/opt/python3.10 tool.py"]
    described = [
        packet.track_descriptor.process for packet in trace.packet if packet.track_descriptor.HasField("process")
    ]
    assert [(each.pid, each.process_name) for each in described][:3] == [
        (100, "app.py"),
        (101, "app.py"),
        (102, "tool.py"),
    ]


def test_a_scrubbed_copy_keeps_the_tree_and_no_command(tree: Builder, tmp_path: Path) -> None:
    tree.rows["processes"][5]["executable"] = "/usr/lib/secret/cc1"
    with Recording(tree.write()) as recording:
        scrub(recording, make_request(recording), tmp_path / "all.tacho")
        scrub(recording, make_request(recording, drop=(), process=["101", "tool.py"]), tmp_path / "some.tacho")
        scrub(recording, make_request(recording, drop=(), start_s=5.0), tmp_path / "late.tacho")
    with Recording(tmp_path / "all.tacho") as copy:
        processes = copy.table("processes")
        assert processes.column("command").null_count == processes.num_rows == 23
        assert "secret" not in str(processes.to_pylist())
        assert processes.column("parent").to_pylist()[:4] == [None, 0, 1, 1]
    with Recording(tmp_path / "some.tacho") as copy:
        assert copy.table("processes").column("pid").to_pylist() == [101, 102]
        assert copy.table("processes").column("parent").to_pylist() == [None, 0]
    with Recording(tmp_path / "late.tacho") as copy:
        assert copy.table("processes").column("pid").to_pylist() == [100]
        assert copy.table("processes").column("user_ns").to_pylist() == [None]


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("samples whose stack was torn", "1 sample whose stack was torn"),
        ("recorded processes that went on", "1 recorded process that went on"),
        ("forked child processes that were not", "1 forked child process that were not"),
        ("anonymous mappings of a process", "1 anonymous mapping of a process"),
        ("an unknown cause", "1 an unknown cause"),
    ],
)
def test_one_of_something(plural: str, one: str) -> None:
    assert counted(1, plural) == one
    assert counted(2000, plural) == f"2,000 {plural}"

"""The commands as a user types them, and what they print."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tachograph.analyzer import Question, Recording, build_profile
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.commands.info import info
from tachograph.analyzer.conclusions import awaits, copies, gpu
from tachograph.analyzer.conclusions.leaks import leak_report as leaks
from tachograph.analyzer.conclusions.memory import memory_columns as heap_columns
from tachograph.analyzer.recording.question_options import Sort
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.line_selection import MAX_LINES, blocks, important
from tachograph.format.manifest import FORMAT_VERSION
from unit.analyzer.recordings import NATIVE_FRAME, PYTHON_FRAME, Builder

FAULTS = ("copied_after_fork_bytes",)
NOT_RECORDED = (*heap_columns.COLUMNS, *copies.COLUMNS, *leaks.COLUMNS, *gpu.COLUMNS, "timeline", *FAULTS)
"""Columns about memory, copies, leaks and GPUs."""

EVIL = "evil\x1b[31m[bold]\r\u202e\x07\x9b2J"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def dumps(value: Mapping[str, Any]) -> str:
    return "".join(pieces(value))


def invoke(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))  # type: ignore[arg-type]


def small(builder: Builder) -> Builder:
    source = "import x\n\ndef f():\n    for i in x:\n        work(i)  # the hot one\n    return 1\n\nf()\n"
    file = builder.file("/srv/app/main.py", source)
    main, f = builder.code(file, "<module>"), builder.code(file, "f", 3)
    for _ in range(150):
        builder.cpu(builder.stack((main, 7), (f, 2)), 10, native_frame=NATIVE_FRAME)
    builder.cpu(builder.stack((main, 7), (f, 1)), 10)
    builder.wait(builder.stack((main, 7)), 0, 2000)
    return builder


def test_analyze_shows_the_newest_recording(builder: Builder, here: Path) -> None:
    small(builder).write()
    older = Builder(here / "older.tacho")
    older.write()
    os.utime(older.path, (1, 1))
    result = invoke(analyze)
    assert result.exit_code == 0, result.output
    assert "program.py" in result.output
    lines = result.output.splitlines()
    hot = next(line for line in lines if "the hot one" in line)
    assert hot.split()[:2] == ["5", "99.3"]
    assert any(line.split() == ["4", "0.7", "±1.8", "0.7", "for", "i", "in", "x:"] for line in lines), result.output
    assert any("2.00s" in line and "f()" in line for line in lines)
    assert "nothing was lost" in result.output


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("colour", [None, "truecolor"])
def test_the_report_fits_its_terminal(builder: Builder, width: int, colour: Literal["truecolor"] | None) -> None:
    builder.quality.append({"process": 0, "loss": "stacks_torn", "count": 5})
    builder.thread("worker " + "long name " * 30)
    with Recording(small(builder).write()) as recording:
        profile = build_profile(recording, Question())
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        terminal = colour is not None
        console = Console(
            width=width,
            force_terminal=terminal,
            color_system=colour,
            record=True,
            markup=False,
            file=nowhere,
        )
        show(profile, console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_terminals_without_unicode(builder: Builder, tmp_path: Path, encoding: str) -> None:
    with Recording(small(builder).write()) as recording:
        profile = build_profile(recording, Question())
    with (tmp_path / "out").open("w", encoding=encoding) as file:
        show(profile, Console(file=file, width=80, markup=False))
    assert "the hot one" in (tmp_path / "out").read_text(encoding)


def test_json(builder: Builder, here: Path) -> None:
    small(builder).write()
    result = invoke(analyze, "run.tacho", "--json", "-")
    found = json.loads(result.output)
    line = found["lines"][0]
    assert {key: line[key] for key in ("file", "line", "function", "samples", "python_s", "native_s", "kernel_s")} == {
        "file": "/srv/app/main.py",
        "line": 5,
        "function": "f",
        "samples": 150,
        "python_s": 0.0,
        "native_s": 1.5,
        "kernel_s": 0.0,
    }
    assert line["wait_s"] == 0.0
    assert line["source"] == "        work(i)  # the hot one"
    assert line["cpu_share_low"] < line["cpu_share"] < line["cpu_share_high"]
    assert [(each["function"], each["language"], each["total_cpu_s"]) for each in found["functions"]] == [
        ("f", "python", 1.51),
        ("deflate", "native", None),
        ("<module>", "python", 1.51),
    ]
    assert found["threads"][0]["name"] == "MainThread"
    assert {"name", "tid", "python_s", "native_s", "kernel_s", "wait_s"} <= found["threads"][0].keys()
    assert found["totals"]["main_wait_s"] == 2.0
    notes = ["memory and copies were not recorded"]
    quality = {"state": "complete", "nothing_lost": True, "losses": [], "causes": []}
    quality |= {"being_written": False, "recorder_cpu_s": None, "hooks": None, "recorder_bytes": None}
    assert found["quality"] == {**quality, "notes": notes}
    assert invoke(analyze, "run.tacho", "--json", "out.json").output == ""
    assert json.loads((here / "out.json").read_text()) == found
    assert len(json.loads(invoke(analyze, "run.tacho", "--json", "-", "--top", "1").output)["lines"]) == 1


def names_in(value: object) -> set[str]:
    """The names of all objects below a value."""
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def test_documented_names(builder: Builder) -> None:
    """docs/reference/json.md lists every name of the document, and no other."""
    builder.quality.append({"process": 0, "loss": "stacks_torn", "count": 5})
    stack = builder.stack((builder.code(builder.file("/srv/app/leak.py")), 0))
    builder.memory("start", 0, 0)
    for at in range(0, 10_000, 100):
        builder.block(stack, 1000, at)
    builder.memory_part("heap", 9000, 200_000)
    builder.memory_part("anonymous", 9000, 50_000_000)
    builder.memory("tick", 9000, 90_000, resident_bytes=50_200_000, obj_allocated_bytes=90_000)
    builder.memory("end", 10_000, 100_000, obj_allocated_bytes=10_000)
    builder.span("epoch", 0, 100)
    builder.cpu(builder.stack((builder.code(0, "serve", flags=0x80), 0)))
    builder.gpu(100, 50, 0, memory_bytes=1, power_mw=1, users=1)
    builder.parameters["redundancy"] = True
    path = builder.native_stack(None, PYTHON_FRAME, stack)
    native: dict[str, Any] = {"native_frame": NATIVE_FRAME, "native_stack": path}
    partner = {f"partner_{name}": value for name, value in native.items()}
    for at in range(60):
        builder.cpu(stack, **native, native_path=1)
        builder.redundancy(stack, at, equal=True, **native, **partner)
    with Recording(small(builder).write()) as recording:
        found = json.loads(dumps(document(build_profile(recording, Question()))))
    assert all(
        found[name]
        for name in ("lines", "functions", "files", "threads", "leaks", "memory", "spans", "tasks", "redundancies")
    )
    text = (Path(__file__).parents[3] / "docs" / "reference" / "json.md").read_text("utf-8")
    names_of_rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    documented = {name for cell in names_of_rows for name in re.findall(r"`(\w+)`", cell)}
    assert documented == names_in(found)


def test_unknown_is_null_in_json(builder: Builder) -> None:
    builder.parameters["waits"] = False
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), None)), native_frame=None, system_ns=None)
    with Recording(builder.write()) as recording:
        found = json.loads(dumps(document(build_profile(recording, Question()))))
    nulls = {key for key, value in found["lines"][0].items() if value is None}
    unknown = {"python_s", "native_s", "kernel_s", "wait_s", "main_wait_s", "gpu_wait_s", "cpu_wait_s"}
    unknown |= {f"total_{name}" for name in unknown} | {"line", "source", "wait_for", "gc_s", *awaits.COLUMNS}
    assert nulls == unknown | set(NOT_RECORDED)
    assert found["memory"] is None
    assert found["leaks"] is None
    assert found["totals"]["kernel_s"] is None


def test_info_counts_processes() -> None:
    """By how they were recorded; version 1.0 did not say."""
    vectors = Path(__file__).parents[3] / "format-spec" / "vectors"
    tree = vectors / "tree.tacho"
    assert "processes    1 Python, 1 Python without its stacks, 2 only listed\n" in invoke(info, str(tree)).output
    found = json.loads(invoke(info, "--json", "-", str(tree)).output)["processes"]
    assert found == {"listed": 2, "python": 1, "native": 1}
    assert "processes    1 recorded\n" in invoke(info, str(vectors / "whole.tacho")).output


def test_info(builder: Builder, here: Path) -> None:
    builder.quality += [
        {"process": 0, "loss": "records_dropped", "count": 3},
        {"process": 0, "loss": "new", "count": 1},
    ]
    small(builder).write()
    result = invoke(info)
    assert result.exit_code == 0, result.output
    for expected in ("program.py", f"format       {FORMAT_VERSION}", "complete", "10 ms", "stacks", "! 3 records"):
        assert expected in result.output
    found = json.loads(invoke(info, "--json", "-").output)
    assert found["tables"]["cpu"]["rows"] == 151
    assert found["parameters"]["interval_ns"] == 10_000_000
    assert [loss["loss"] for loss in found["quality"]["losses"]] == ["records_dropped", "new"]


def test_labels_are_shown(builder: Builder, here: Path) -> None:
    builder.labels = {"version": "1.4", "k8s.pod.name": EVIL, **{f"label{number}": "x" for number in range(20)}}
    small(builder).write()
    told = invoke(analyze).output
    assert "version=1.4" in told
    assert "and 10 more ('tachograph info' has all)" in told
    assert "\x1b" not in told
    assert "label19=x" in invoke(info).output
    labels = json.loads(invoke(analyze, "--json", "-").output)["recording"]["labels"]
    assert (labels["version"], len(labels)) == ("1.4", 22)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no recording in this folder"),
        (["none.tacho"], "none.tacho does not exist"),
        (["run.tacho", "--from", "2", "--to", "1"], "the window is empty"),
        (["run.tacho", "--thread", "x"], "no thread is named 'x'"),
        (["run.tacho", "--attribution", "delay"], "--attribution delay needs"),
        (["run.tacho", "--json", "missing/out.json"], "cannot write missing/out.json: No such file or directory"),
    ],
)
def test_bad_input_is_one_line_and_status_2(builder: Builder, here: Path, arguments: list[str], message: str) -> None:
    if arguments and arguments[0] == "run.tacho":
        small(builder).write()
    result = invoke(analyze, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("option", [["--top", "0"], ["--sort", "x"], ["--attribution", "x"], ["--from", "abc"]])
def test_bad_options(here: Path, option: list[str]) -> None:
    assert invoke(analyze, *option).exit_code == 2


def test_a_missing_extra_is_one_line(builder: Builder, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder.write()
    for name in [name for name in sys.modules if name.startswith(("tachograph.analyzer.", "rich."))]:
        if name.rpartition(".")[2] not in ("commands", "analyze", "common", "info"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    result = invoke(analyze, "run.tacho")
    assert result.exit_code == 2
    assert "pip install 'tachograph[analyze]'" in result.stderr


def test_hostile_names_and_sources(builder: Builder, here: Path) -> None:
    file = builder.file(f"/srv/{EVIL}.py", f"{EVIL} = 1\n" + "x" * 100_000 + "\n[/red] \x00\u2028\ud7ff\n")
    code = builder.code(file, f"f{EVIL}")
    builder.thread(EVIL * 100)
    for line in range(3):
        for thread in range(2):
            builder.cpu(builder.stack((code, line)), thread=thread)
    builder.rows["processes"][0]["python_version"] = EVIL
    builder.write()
    for result in (invoke(analyze), invoke(info), invoke(analyze, "--json", "-")):
        assert result.exit_code == 0, result.output
        assert not set("\x1b\r\x07\x00\x9b\u202e\u2028") & set(result.output)
    assert "[bold]" in invoke(analyze).output


def test_selection_of_lines(builder: Builder) -> None:
    file = builder.file("/srv/a.py", "\n".join(f"line {n}" for n in range(1, 60)))
    code = builder.code(file)
    for line, ms in ((4, 1000), (5, 500), (20, 300), (30, 17), (0, 10)):
        builder.cpu(builder.stack((code, line)), ms)
    with Recording(builder.write()) as recording:
        profile = build_profile(recording, Question())
    (block,) = blocks(profile)
    assert [(row.number, row.context) for row in block.rows] == [
        (4, True),
        (5, False),
        (6, False),
        (7, True),
        (20, True),
        (21, False),
        (22, True),
    ]
    assert block.gaps == {4}
    (best,) = blocks(profile, top=1)
    assert [row.number for row in best.rows] == [4, 5, 6]
    assert len(important(profile, Sort.WAIT)) == 0


def test_never_more_than_300_lines(builder: Builder) -> None:
    files = [builder.file(f"/srv/{n}.py", "\n".join("x" * 200)) for n in range(100)]
    for file in files:
        builder.cpu(builder.stack((builder.code(file), 50)))
        builder.wait(builder.stack((builder.code(file), 70)), 0, 1000)
    with Recording(builder.write()) as recording:
        profile = build_profile(recording, Question())
    assert sum(len(block.rows) for block in blocks(profile)) == MAX_LINES
    assert sum(len(block.rows) for block in blocks(profile, top=1000)) <= MAX_LINES


def test_help_has_examples() -> None:
    for command in (analyze, info):
        result = invoke(command, "--help")
        assert "Examples:" in result.output
        assert "run.tacho" in result.output


def test_a_document_is_json_with_a_line_for_each_record() -> None:
    document = {
        "text": 'two\nlines, "quoted" and é\\n',
        "nothing": [],
        "rows": [{"a": [1, 2], "b": {"c": None}}, {}, 5, "x\ny"],
        "nested": {"rows": [{"a": 1.5}], "none": {}},
    }
    text = dumps(document)
    assert json.loads(text) == document
    for record in document["rows"]:
        assert f"\n  {json.dumps(record)}" in text
    assert json.loads(dumps({"unknown": float("nan"), "rows": [float("inf")]})) == {"unknown": None, "rows": [None]}

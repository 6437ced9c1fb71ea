"""Recordings with texts of megabytes and with stacks as deep as may be: every reader takes a time linear in them."""

import time
from pathlib import Path

import pytest

from fuzz.readers import FORMATS, fault
from tachograph.analyzer import Question, Recording, build_profile
from tachograph.analyzer.report_data.advice.table import suggestions
from tachograph.format import FormatError
from tachograph.format.schema import MAX_STACK_DEPTH
from unit.analyzer.recordings import MS, START, Builder

LONG, LONGEST = 1 << 19, 1 << 20
TEXTS = ["-a "]
MORE_TEXTS = ["a", "\n", "/", "A1", " ", "\\", "<", ".", "-", "'", "{", "[", "&", "*", "(a+)+", "x.", "a=", "\u202e"]


def every_command(recording: Path, out: Path) -> list[list[str]]:
    path = str(recording)
    reading = [["analyze", path, *more] for more in ((), ("--memory",), ("--json", "-"), ("--scope", "*a*b*c*"))]
    reading += [["analyze", path, "--html", str(out / "report.html")], ["info", path], ["diff", path, path, "--anyway"]]
    reading += [["export", kind, path, "-o", str(out / kind)] for kind in FORMATS]
    return [*reading, ["scrub", path, "-o", str(out / "scrubbed.tacho")]]


def seconds_of_each(recording: Path, out: Path) -> dict[str, float]:
    """CPU seconds of every command that reads the recording; none may fail."""
    out.mkdir()
    spent = {}
    for command in every_command(recording, out):
        began = time.process_time()
        assert fault(command, out, "no canary") is None, command
        spent[" ".join(command[:2] + command[3:4])] = time.process_time() - began
    return spent


def long_texts(path: Path, piece: str, size: int) -> Path:
    """A recording in which every text has so many bytes."""
    text = piece * (size // len(piece))
    builder = Builder(path, quality=[{"process": 0, "loss": text, "count": 1}], parameters={"gpu": True, text: text})
    builder.rows["processes"][0] |= {"executable": text, "command": text, "origin": "first"}
    builder.thread(text)
    builder.process(101, 1, 9, command=text, executable=text)
    builder.rows["native_frames"][0]["symbol"] = builder.rows["modules"][1]["path"] = text
    code = builder.code(builder.file(text, text), text, 1)
    stack = builder.stack((code, 0), (code, 1, text))
    for thread in (0, 1):
        builder.cpu(stack, thread=thread)
        builder.wait(stack, 0, 5, thread=thread)
        builder.block(stack, 1000, 1, thread=thread)
        builder.copy(stack, 1000, 2, thread=thread)
    builder.memory("start", 0, 0)
    builder.memory("tick", 5, 1000, stack=stack)
    builder.span(text, 0, 5, fields='{"a": "' + text.replace("\\", "").replace('"', "").replace("\n", "") + '"}')
    builder.gpu(1, 50)
    builder.rows["gpu_devices"][0]["name"] = text
    return builder.write()


@pytest.mark.parametrize(
    ("piece", "size"),
    [
        *((each, LONG) for each in TEXTS),
        *(pytest.param(each, LONGEST, marks=pytest.mark.slow) for each in (*TEXTS, *MORE_TEXTS)),
    ],
)
def test_texts_of_megabytes(tmp_path: Path, piece: str, size: int) -> None:
    spent = seconds_of_each(long_texts(tmp_path / "long.tacho", piece, size), tmp_path / "out")
    assert max(spent.values()) < 10 * size / LONGEST, spent


def deep_stacks(path: Path, nodes: int, depth: int) -> Path:
    """A recording whose stacks have so many levels, with samples, waits and blocks at their innermost ones."""
    builder = Builder(path)
    file = builder.file("/app/deep.py", "x\n" * 200)
    codes = [builder.code(file, f"f{number}", number + 1) for number in range(50)]
    for node in range(nodes):
        level, chain = node % depth, node // depth
        parent = node - 1 if level else None
        builder._add("stacks", parent=parent, code=codes[(level * 7 + chain) % 50], instruction=0)
        if level == depth - 1:
            builder.cpu(node)
            builder.wait(node, chain, chain + 1)
            builder.block(node, 1000, chain)
    return builder.write()


def test_the_deepest_stacks(tmp_path: Path) -> None:
    spent = seconds_of_each(
        deep_stacks(tmp_path / "deep.tacho", 2 * MAX_STACK_DEPTH, MAX_STACK_DEPTH), tmp_path / "out"
    )
    assert max(spent.values()) < 10, spent


def test_deeper_stacks_are_refused(tmp_path: Path) -> None:
    deeper = deep_stacks(tmp_path / "deep.tacho", MAX_STACK_DEPTH + 1, MAX_STACK_DEPTH + 1)
    with Recording(deeper) as recording, pytest.raises(FormatError, match=r"stacks\.parquet: a stack has more than"):
        recording.table("stacks")
    began = time.process_time()
    deepest = deep_stacks(tmp_path / "deepest.tacho", 200_000, 200_000)
    assert fault(["analyze", str(deepest)], tmp_path / "out", "no canary") is None
    assert time.process_time() - began < 10


NESTED = "\n".join(" " * level + f"for i{level} in range(a.shape[0]):" for level in range(95)) + "\n"
SOURCES = {
    "empty lines": "import numpy\n" + "\n" * 290_000,
    "a chain of attributes": "import numpy\nx" + ".a" * 2000 + "\nfor i in y:\n x" + ".a" * 2000 + " = x" + ".a" * 2000,
    "sums": "import numpy\nfor i in range(a.shape[0]):\n b = b" + "+b" * 90_000,
    "loops in a loop": "import numpy\nfor i in range(a.shape[0]):\n"
    + "".join(f" for j{number} in range(3): a[j{number},i]=1\n" for number in range(7000)),
    "nested loops": "import numpy\n" + NESTED + (" " * 95 + "x = x + a[i1, i2 - 1]\n") * 2000,
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_a_source_does_is_found_in_linear_time(name: str, tmp_path: Path) -> None:
    """All rules look at 18 lines of it, each with enough of the time and of the copies."""
    text = SOURCES[name]
    builder = Builder(tmp_path / "run.tacho")
    file, lines = builder.file("/srv/a.py", text), text.count("\n") + 1
    for number in range(18):
        at = builder.stack((builder.code(file, "f", 1 + number * (lines - 1) // 17), 0))
        for sample in range(200):
            builder.cpu(at, time_ns=START + (number * 200 + sample) * MS)
        builder.copy(at, 1 << 32, 100 + number)
    with Recording(builder.write()) as recording:
        profile = build_profile(recording, Question())
        began = time.process_time()
        suggestions(profile)
        assert time.process_time() - began < 5

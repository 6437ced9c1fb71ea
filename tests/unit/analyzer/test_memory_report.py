"""What the terminal shows of memory, copies and leaks."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.recording.question_options import Sort
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.report_data.headline import ledger
from tachograph.analyzer.report_data.line_selection import important
from tachograph.analyzer.report_data.numbers import short_size
from unit.analyzer.recordings import Builder

MB = 1_000_000
SOURCE = "def keep():\n    store.append(make())\n\ndef convert():\n    return bytes(big)\n\nspin()\n"


def busy(builder: Builder) -> Builder:
    """A line that leaks, a line that copies, and a line that only uses CPU time."""
    file = builder.file("/srv/app/main.py", SOURCE)
    code = builder.code(file, "work")
    for _ in range(200):
        builder.cpu(builder.stack((code, 6)))
    builder.memory("start", 0, 0)
    for at in range(0, 10_000, 100):
        builder.block(builder.stack((code, 1)), MB, at)
        held = (at // 100 + 1) * MB
        builder.memory("tick", at + 50, held, obj_allocated_bytes=MB, resident_bytes=held)
    builder.copy(builder.stack((code, 4)), 500 * MB, 5000)
    return builder


def profiled(builder: Builder) -> Profile:
    if not builder.path.exists():
        busy(builder).write()
    with Recording(builder.path) as recording:
        return build_profile(recording, Question())


def shown(profile: Profile, width: int, sort: Sort = Sort.CPU) -> list[str]:
    file = io.StringIO()
    show(profile, Console(file=file, width=width, markup=False), sort)
    return file.getvalue().splitlines()


def test_it_fits(builder: Builder) -> None:
    profile = profiled(builder)
    for width in (60, 80, 100, 120, 160, 220):
        for sort in (Sort.CPU, Sort.LIVE, Sort.COPIES, Sort.LEAK):
            assert max(map(len, shown(profile, width, sort))) <= width


def test_the_default_table_shows_memory_beside_time(builder: Builder) -> None:
    lines = shown(profiled(builder), 180)
    heads = next(line for line in lines if "CPU %" in line and "wait" in line)
    assert [head for head in ("peak", "average", "at peak", "Py %", "over time", "copy/s") if head in heads] != []
    leaking = next(line for line in lines if "store.append" in line)
    assert leaking.split()[:5] == ["2", "100M", "100M", "100", "▂▂▄▅▆▇██"]
    copying = next(line for line in lines if "bytes(big)" in line)
    assert copying.split()[:2] == ["5", "50.0M"]
    assert any("memory  100 MB held at the peak" in line and "500 MB copied" in line for line in lines)
    assert any("100 MB resident at most" in line for line in lines)


def test_a_narrow_table_keeps_to_time(builder: Builder) -> None:
    lines = shown(profiled(builder), 80)
    assert not any("at peak" in line for line in lines)
    assert any("memory  100 MB held at the peak" in line for line in lines)


def test_the_table_of_memory(builder: Builder) -> None:
    lines = shown(profiled(builder), 120, Sort.LIVE)
    heads = next(line for line in lines if "at peak" in line).split()
    assert heads == [
        "line",
        "at",
        "peak",
        "peak",
        "average",
        "at",
        "end",
        "alloc.",
        "Py",
        "%",
        "over",
        "time",
        "copy/s",
    ]
    assert next(line for line in lines if "store.append" in line).split()[:6] == [
        "2",
        "100M",
        "100M",
        "100M",
        "100M",
        "100",
    ]
    assert any("/srv/app/main.py" in line and "100 MB" in line for line in lines)
    assert not any("spin" in line for line in lines)


def test_leaks_are_listed(builder: Builder) -> None:
    lines = shown(profiled(builder), 120)
    start = next(number for number, line in enumerate(lines) if line.startswith(" Leaks"))
    assert "10 MB/s" in lines[start + 1]
    assert lines[start + 1].endswith("/srv/app/main.py:2")
    assert lines[start + 2].strip() == "store.append(make())"


def test_without_unicode(builder: Builder, tmp_path: Path) -> None:
    profile = profiled(builder)
    with (tmp_path / "out").open("w", encoding="ascii") as file:
        show(profile, Console(file=file, width=180, markup=False))
    text = (tmp_path / "out").read_text("ascii")
    assert "::=+*%##" in text
    assert "* 10 MB/s" in text


def test_what_was_not_recorded(builder: Builder) -> None:
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)))
    builder.write()
    text = "\n".join(shown(profiled(builder), 180))
    entries = [entry.text for entry in ledger(profiled(builder)).notes]
    assert sum("memory and copies were not recorded" in each for each in entries) == 1
    assert "at peak" not in text
    assert "Memory and copies were not recorded here." in "\n".join(shown(profiled(builder), 100, Sort.LIVE))


def test_lines_of_little_memory_are_not_shown_for_it(builder: Builder) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    builder.cpu(builder.stack((code, 0)))
    builder.memory("start", 0, 0)
    builder.block(builder.stack((code, 5)), 900_000, 100)
    builder.memory("end", 1000, 900_000, obj_allocated_bytes=900_000)
    builder.write()
    profile = profiled(builder)
    assert profile.lines.loc[important(profile, beside={"peak_bytes", "copied_bytes"}), "line"].tolist() == [1]
    assert profile.lines.loc[important(profile, Sort.LIVE), "line"].tolist() == [6]


@pytest.mark.parametrize(
    ("arguments", "first"),
    [(["--memory"], 2), (["--sort", "copies"], 5), (["--sort", "cpu"], 7), (["--sort", "leak"], 2), ([], 7)],
)
def test_options(builder: Builder, monkeypatch: pytest.MonkeyPatch, arguments: list[str], first: int) -> None:
    busy(builder).write()
    monkeypatch.chdir(builder.path.parent)
    result = CliRunner().invoke(analyze, ["run.tacho", "--json", "-", *arguments])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["lines"][0]["line"] == first
    paper = json.loads(CliRunner().invoke(analyze, ["run.tacho", "--json", "-", "--leaks", "paper"]).output)
    assert paper["question"]["leaks"] == "paper"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "?"),
        (math.nan, "?"),
        (0, ""),
        (999, ""),
        (1000, "1.00K"),
        (9994, "9.99K"),
        (9996, "10.0K"),
        (99_960, "100K"),
        (999_400, "999K"),
        (999_600, "1.00M"),
        (512e6, "512M"),
        (1.53e9, "1.53G"),
    ],
)
def test_short_sizes(value: float | None, text: str) -> None:
    assert short_size(value) == text


def test_curves_in_few_characters() -> None:
    style = Style(colour=False, unicode=True)
    assert style.curve([(0, 0), (8, 8)], 8) == "▁▂▃▄▅▆▇█"
    assert style.curve([(0, 5), (4, 5), (4, 0), (8, 0)], 8) == "████    "
    assert style.curve([(0, 0), (3.5, 0), (3.6, 9), (3.7, 0), (8, 0)], 8) == "   █    "
    assert style.curve([(0, 0), (8, 0)], 4) == "    "

"""Memory and copies by call path through Python and native code, on recordings built by hand."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Question, build_profile
from tachograph.analyzer.commands.export import export
from tachograph.analyzer.profile.call_branches import line_calls
from tachograph.analyzer.profile.path_frame import path_frame
from tachograph.analyzer.recording.call_tree import NOTHING
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.render.json_document import line_document
from tachograph.analyzer.render.terminal.call_tree_lines import show_line
from tachograph.analyzer.report_data.native_callees import native_allocators
from tachograph.analyzer.report_data.report_data import build_report_data
from tachograph.format import FormatError
from tachograph.format.enumerations import NativePath
from unit.analyzer.recordings import PYTHON_FRAME, Builder

MB = 1_000_000
SOURCE = "def make():\n    return zeros(n) + list(m)\n\nkeep(make())\nspin()\n"


class Made:
    """``make`` calls ``array_zeros``, which calls ``new_data``, and ``list_extend`` of the interpreter."""

    def __init__(self, path: Path, *, paths: bool = True) -> None:
        self.builder = builder = Builder(path)
        file = builder.file("/srv/app/main.py", SOURCE)
        main, make = builder.code(file, "<module>"), builder.code(file, "make")
        self.main, self.make = builder.stack((main, 3)), builder.stack((main, 3), (make, 1))
        library = builder.module("/v/site-packages/numpy/_core.so")
        zeros, data = (builder.native_frame(library, name) for name in ("array_zeros", "new_data"))
        extend = builder.native_frame(0, "list_extend")
        loop = builder.native_stack(None, PYTHON_FRAME, self.make)
        inside = builder.native_stack(loop, zeros)
        self.zeros = self._called(data, inside, paths)
        self.list = self._called(extend, loop, paths)
        for _ in range(5):
            builder.cpu(self.main)
        if not paths:
            builder.rows["native_stacks"].clear()

    @staticmethod
    def _called(frame: int, path: int, paths: bool) -> dict[str, int]:
        known = {"native_frame": frame}
        return known | ({"native_stack": path, "native_path": NativePath.WHOLE} if paths else {})

    def blocks(self) -> Made:
        """16 MB live at the peak (10 of them at the end), 20 MB allocated; 4 MB of the peak without native frame."""
        builder = self.builder
        builder.memory("start", 0, 0)
        builder.block(self.make, 10 * MB, 100, **self.zeros)
        builder.block(self.make, 2 * MB, 200, 3000, **self.list)
        builder.block(self.make, 4 * MB, 300, 3000)
        builder.memory("tick", 1000, 16 * MB, obj_allocated_bytes=16 * MB, resident_bytes=16 * MB)
        builder.block(self.make, 4 * MB, 4000, 4500, **self.zeros)
        builder.memory("end", 9000, 10 * MB, obj_allocated_bytes=4 * MB, obj_freed_bytes=10 * MB)
        builder.copy(self.make, 50 * MB, 5000, **self.zeros)
        return self


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return Made(tmp_path / "run.tacho").blocks().builder.write()


def by_path(path: Path, **question: object) -> dict[str, tuple[float, ...]]:
    """Allocated, at peak, at end, copied, in MB, by path; of those with any."""
    with Recording(path) as recording:
        profile = build_profile(recording, Question(scope="all", **question))  # type: ignore[arg-type]
        frame = path_frame(profile.paths, waits_known=True)
    columns = ["allocated_bytes", "live_at_peak_bytes", "live_at_end_bytes", "copied_bytes"]
    frame = frame[(frame[columns].fillna(0) > 0).any(axis=1)]
    rows = (frame[columns] / MB).round(6).itertuples(index=False, name=None)
    return {" ".join(path): tuple(row) for path, row in zip(frame["path"], rows, strict=True)}


def test_sums_by_path(made: Path) -> None:
    assert by_path(made) == {
        "<module> make array_zeros new_data": (14, 10, 10, 50),
        "<module> make": (4, 4, 0, 0),
        "<module> make list_extend": (2, 2, 0, 0),
    }


def test_they_add_up_to_what_functions_say(made: Path) -> None:
    with Recording(made) as recording:
        profile = build_profile(recording, Question(scope="all"))
    for name, values in profile.paths.held.items():
        assert values.sum() == pytest.approx(profile.functions[name].sum()), name
    assert set(profile.paths.held) == {
        *("allocated_bytes", "live_at_peak_bytes", "live_at_resident_peak_bytes", "live_at_end_bytes", "copied_bytes")
    }


def test_only_what_the_asked_threads_allocated(tmp_path: Path) -> None:
    made = Made(tmp_path / "run.tacho").blocks()
    other = made.builder.thread("other")
    made.builder.block(made.make, 7 * MB, 500, thread=other, **made.zeros)
    path = made.builder.write()
    assert by_path(path, thread="other")["<module> make array_zeros new_data"][1] == 7
    assert "<module> make list_extend" not in by_path(path, thread="other")


def test_without_paths_the_caller_of_the_allocator_is_known(tmp_path: Path) -> None:
    path = Made(tmp_path / "run.tacho", paths=False).blocks().builder.write()
    assert by_path(path)["<module> make new_data"] == (14, 10, 10, 50)


def test_without_memory_it_is_unknown(tmp_path: Path) -> None:
    path = Made(tmp_path / "run.tacho").builder.write()
    with Recording(path) as recording:
        profile = build_profile(recording, Question(scope="all"))
        frame = path_frame(profile.paths, waits_known=True)
    assert profile.paths.held == {}
    assert frame["live_at_peak_bytes"].isna().all()
    assert native_allocators(profile, profile.lines) == [[] for _ in profile.lines.index]


def test_the_line_of_an_allocation(made: Path) -> None:
    """No CPU sample hit the line: what allocated for it is known nevertheless."""
    with Recording(made) as recording:
        profile = build_profile(recording, Question())
    found = line_calls(profile, "main.py:2")
    assert (found.whole.cpu_s, found.whole.live_at_peak_bytes, found.whole.copied_bytes) == (0, 16 * MB, 50 * MB)
    assert found.own["live_at_peak_bytes"] == 4 * MB
    zeros, listed = sorted(found.whole.children, key=lambda each: each.name)
    assert (zeros.name, zeros.module, zeros.live_at_peak_bytes, zeros.allocated_bytes) == (
        *("array_zeros", "numpy/_core"),
        *(10 * MB, 14 * MB),
    )
    assert (listed.name, listed.live_at_peak_bytes, listed.live_at_end_bytes) == ("list_extend", 2 * MB, 0)
    out = io.StringIO()
    show_line(profile, found, Console(file=out, width=100, highlight=False, markup=False, emoji=False))
    text = out.getvalue()
    assert "Memory, held at the peak" in text
    assert re.search(r"\n +10\.0M +10\.0M +14\.0M  array_zeros . new_data  numpy/_core", text), text
    assert re.search(r"\n +4\.00M +4\.00M  \(the line itself\)", text), text
    assert "Copies" in text
    document = json.loads(json.dumps(line_document(profile, found)))
    assert document["line"]["live_at_peak_bytes"] == 16 * MB
    assert {row["name"]: row["allocated_bytes"] for row in document["calls"]}["new_data"] == 14 * MB


def test_a_line_without_anything_is_refused(made: Path) -> None:
    with Recording(made) as recording:
        profile = build_profile(recording, Question())
    with pytest.raises(FormatError, match=r"main\.py:5: no time and no memory was charged"):
        line_calls(profile, "main.py:5")


def test_a_line_that_is_opened_lists_who_allocated(made: Path) -> None:
    with Recording(made) as recording:
        profile = build_profile(recording, Question())
        lines = profile.lines
    (found,) = [
        allocators
        for line, allocators in zip(lines["line"], native_allocators(profile, lines), strict=True)
        if line == 2
    ]
    assert [(each.name, each.module, each.live_at_peak_bytes, each.allocated_bytes) for each in found] == [
        ("array_zeros", "numpy/_core", 10 * MB, 14 * MB),
        ("list_extend", "python3.13", 2 * MB, 2 * MB),
    ]


def test_the_flame_graph_of_memory_has_native_frames(made: Path) -> None:
    with Recording(made) as recording:
        data = build_report_data(recording, Question())
    names = data.flame_paths.tree.function_names
    flame = data.flame

    def path(node: int) -> str:
        found = []
        while node != NOTHING:
            found.append(names[flame.function[node]])
            node = int(flame.parent[node])
        return " ".join(found[::-1])

    peak = {path(node): held / MB for node, held in enumerate(data.flame_held["live_at_peak_bytes"]) if held > 0}
    assert peak == {
        "<module> make array_zeros new_data": 10,
        "<module> make": 4,
        "<module> make list_extend": 2,
    }
    allocated = data.flame_series.own["allocated"].sum(axis=1)
    assert {path(node): round(float(size) / MB, 3) for node, size in enumerate(allocated) if size > 0} == {
        "<module> make array_zeros new_data": 14,
        "<module> make": 4,
        "<module> make list_extend": 2,
    }
    # Lines have the same as before: what native functions allocated is their caller's.
    line = int(np.flatnonzero(data.lines.frame["line"] == 2)[0])
    assert data.lines.series.own["allocated"][line].sum() == pytest.approx(20 * MB)
    assert data.overall["net"].sum() == pytest.approx(10 * MB)


@pytest.mark.parametrize(("metric", "amount"), [("live", 10), ("allocated", 14), ("end", 10), ("copied", 50)])
def test_exports(made: Path, tmp_path: Path, metric: str, amount: int) -> None:
    out = tmp_path / "out.txt"
    arguments = ["collapsed", str(made), "--metric", metric, "--native", "--output", str(out)]
    result = CliRunner().invoke(export, arguments)
    assert result.exit_code == 0, result.output
    found = dict(line.rsplit(" ", 1) for line in out.read_text().splitlines())
    (path,) = [path for path in found if path.endswith(("new_data (_core.so)", "new_data"))]
    assert re.fullmatch(r"<module>.*;make.*;array_zeros.*;new_data.*", path), found
    assert int(found[path]) == amount * MB

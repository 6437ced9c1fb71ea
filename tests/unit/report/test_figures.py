from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from browser import story
from tachograph.analyzer import Question, Recording
from tachograph.analyzer.render.figures.all_figures import FIGURES, write_figures
from tachograph.analyzer.render.figures.charts import draw_copies, draw_footprint, draw_lines, top_sites
from tachograph.analyzer.render.figures.figure_style import look
from tachograph.analyzer.render.figures.flame_figure import fold_stem, layout
from tachograph.analyzer.report_data.report_data import ReportData, build_report_data
from tachograph.format import FormatError
from unit.analyzer.recordings import Builder

pytestmark = pytest.mark.broad  # each test draws, or compares, many


def drawn(path: Path) -> ReportData:
    with Recording.open(path) as recording:
        return build_report_data(recording, Question())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    return drawn(story.build(tmp_path_factory.mktemp("story") / "story.tacho"))


@dataclass(frozen=True)
class Written:
    """All figures of the story, and matplotlib's settings before and after they were drawn."""

    paths: list[Path]
    before: dict[Any, Any]
    after: dict[Any, Any]

    def text(self, name: str) -> str:
        return next(path for path in self.paths if path.name == name).read_text("utf-8")


@pytest.fixture(scope="module")
def written(told: ReportData, tmp_path_factory: pytest.TempPathFactory) -> Written:
    before = dict(mpl.rcParams)
    paths = write_figures(told, tmp_path_factory.mktemp("written") / "figures")
    return Written(paths, before, dict(mpl.rcParams))


def test_every_figure_is_written_twice(written: Written) -> None:
    assert {path.name for path in written.paths} == {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")}
    for path in written.paths:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            assert ET.parse(path).getroot().tag.endswith("svg")
    assert "main.py:5" in written.text("lines.svg")


def test_bars_are_as_long_as_the_profile_says(told: ReportData) -> None:
    with look():
        figure = draw_lines(told)
    assert figure is not None
    (axes,) = figure.axes
    ends = [bar.get_x() + bar.get_width() for container in axes.containers for bar in container]
    assert max(ends) == pytest.approx(100 * 4.0 / 7.01, rel=1e-6)
    with look():
        copied = draw_copies(told)
    assert copied is not None
    assert [bar.get_width() for bar in copied.axes[0].containers[0]] == [pytest.approx(10.0)]


def test_the_legend_of_lines_covers_nothing(told: ReportData) -> None:
    with look():
        figure = draw_lines(told)
        assert figure is not None
        figure.draw_without_rendering()
        (legend,) = figure.legends
        assert not legend.get_window_extent().overlaps(figure.axes[0].get_window_extent())


def test_a_footprint_without_a_followed_block(builder: Builder, picture: Callable[..., ReportData]) -> None:
    builder.memory("start", 0, 0)
    builder.memory("end", 1000, 5_000_000, obj_allocated_bytes=5_000_000)
    with look():
        figure = draw_footprint(picture())
    assert figure is not None
    _, labels = figure.axes[0].get_legend_handles_labels()
    assert labels == ["everything else", "footprint"]


def test_what_is_stacked_never_stands_above_the_footprint(builder: Builder, picture: Callable[..., ReportData]) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.memory("start", 0, 0)
    # A block that stands for more than the program ever held, as a sample of short-lived ones may.
    builder.block(stack, 1_000_000, 100, 400, mean=50_000_000)
    builder.memory("end", 1000, 5_000_000, obj_allocated_bytes=55_000_000, obj_freed_bytes=50_000_000)
    with look():
        figure = draw_footprint(picture())
    assert figure is not None
    axes = figure.axes[0]
    tops = [
        float(np.asarray(path.vertices)[:, 1].max()) for stacked in axes.collections for path in stacked.get_paths()
    ]
    assert len(tops) > 1
    assert max(tops) == pytest.approx(5.0)


def test_the_footprint_is_that_of_the_counters(told: ReportData) -> None:
    held, names = top_sites(told.lines)
    assert names == ["app/main.py:11"]
    assert held[0][-1] == pytest.approx(100e6)
    assert np.all(np.diff(held[0]) >= 0)
    with look():
        figure = draw_footprint(told)
    assert figure is not None
    assert np.max(figure.axes[0].lines[0].get_ydata()) == pytest.approx(100.0)


def test_boxes_of_the_flame_graph_are_parts_of_the_whole() -> None:
    parent, own = np.array([-1, 0, 0, -1]), np.array([1.0, 2, 4, 3])
    boxes = {node: (left, width, level) for node, left, width, level in layout(parent, own)}
    assert boxes == {0: (0.0, 0.7, 0), 3: (0.7, 0.3, 0), 2: (0.0, 0.4, 1), 1: (0.4, 0.2, 1)}


def test_common_callers_are_one_box_of_a_figure() -> None:
    """0 calls 1 calls 2 calls 3, which calls two; beside them time without a stack."""
    parent, own = np.array([-1, 0, 1, 2, 3, 3, -1]), np.array([0.0, 0, 0, 1, 50, 47, 2])
    boxes, stem = fold_stem(parent, layout(parent, own))
    assert stem == [0, 1, 2]
    levels = {node: level for node, _, _, level in boxes}
    assert levels == {0: 0, 6: 0, 3: 1, 4: 2, 5: 2}
    # Work in between, a second callee or too few frames: nothing is common, and nothing is left out.
    for parents, owns in (([-1, 0, 1, 2, 3], [0.0, 5, 5, 5, 50]), ([-1, 0, 1, 1], [0.0, 0, 50, 50])):
        whole = layout(np.array(parents), np.array(owns))
        assert fold_stem(np.array(parents), whole) == (whole, [])


def test_the_flame_figure_says_how_many_frames_it_folds(
    builder: Builder, picture: Callable[..., ReportData], tmp_path: Path
) -> None:
    file = builder.file("/srv/a.py")
    names = ["start", "run", "call", "work", "left", "right"]
    code = {name: (builder.code(file, name), 0) for name in names}
    stem = [code[name] for name in names[:4]]
    for last in ("left", "right"):
        for _ in range(10):
            builder.cpu(builder.stack(*stem, code[last]))
    write_figures(picture(), tmp_path)
    text = "".join(ET.parse(tmp_path / "flame.svg").getroot().itertext())
    assert "3 frames, from start to call" in text
    assert "3 common frames in one box" in text


def test_the_flame_figure_of_memory_is_of_the_peak(written: Written) -> None:
    text = "".join(ET.fromstring(written.text("flame-live.svg")).itertext())
    assert "100 MB at the peak, after 10.0 s" in text
    assert "cache" in text
    assert "early" not in text


def test_what_was_not_recorded_is_not_drawn(
    builder: Builder, picture: Callable[..., ReportData], tmp_path: Path
) -> None:
    f = builder.code(builder.file("/srv/a.py"))
    builder.cpu(builder.stack((f, 1)))
    names = {path.stem for path in write_figures(picture(), tmp_path / "figures")}
    assert names == {"lines", "flame", "threads"}


def test_hostile_names_are_text(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "run.tacho")
    f = builder.code(builder.file("/srv/$\\frac{1}{0}$<b>&.py", "x = '$^$' # 漢字 </text>\n" * 5), "$\\undefined$")
    for _ in range(10):
        builder.cpu(builder.stack((f, 1)))
    write_figures(drawn(builder.write()), tmp_path / "figures")
    text = "".join(ET.parse(tmp_path / "figures" / "lines.svg").getroot().itertext())
    assert "$\\frac{1}{0}$<b>&.py:2" in text
    assert "</text>" in text


def test_settings_of_the_caller_stay(written: Written) -> None:
    assert written.after == written.before


def test_a_folder_that_cannot_be_made_is_one_line(told: ReportData, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match="cannot write figures"):
        write_figures(told, tmp_path / "file")

"""GPUs in the page and in the figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tachograph.analyzer import Question, Recording
from tachograph.analyzer.render.figures.charts import draw_gpu
from tachograph.analyzer.render.html.payload import busy_by_span, gpu_document, thinned
from tachograph.analyzer.render.html.report_page import report
from tachograph.analyzer.report_data.report_data import ReportData, build_report_data
from unit.analyzer.recordings import Builder
from unit.report.block import read_block

GIB = 1 << 30


def waiting(path: Path) -> Builder:
    """A program that waits for ten seconds."""
    builder = Builder(path)
    builder.wait(builder.stack((builder.code(builder.file("/srv/a.py", "wait()\n")), 0)), 0, 10_000)
    return builder


def drawn_up(builder: Builder) -> ReportData:
    with Recording(builder.write()) as recording:
        return build_report_data(recording, Question())


def picture(path: Path, *, gpu: bool) -> ReportData:
    builder = waiting(path)
    if gpu:
        builder.gpu(0, None, memory_bytes=0)
        for ms in range(100, 10_100, 100):
            builder.gpu(ms, 100 if ms <= 5000 else 0, ms - 100)
        builder.gpu(10_000, None, memory_bytes=3 * GIB)
    return drawn_up(builder)


def test_the_timeline_of_the_page(tmp_path: Path) -> None:
    drawn = picture(tmp_path / "run.tacho", gpu=True)
    found = gpu_document(drawn)
    assert found is not None
    (only,) = found
    assert (only["label"], only["name"], only["share"]) == ("GPU", "A GPU", 0.5)
    busy, half = only["busy"], len(only["busy"]) // 2
    assert all(share == pytest.approx(1.0) for share in busy[2 : half - 2])
    assert all(share == pytest.approx(0.0) for share in busy[half + 2 :])
    assert only["memory"] == [[0.0, 0], [10.0, 3221200000]]
    page = report(drawn)
    assert "GPU busy" in page
    document, _ = read_block(page)
    assert document["gpu"] == found
    assert document["lines"]["columns"]["total_gpu_share"] == [0.5]
    figure = draw_gpu(drawn)
    assert figure is not None
    assert "50.0 % busy, 3.22 GB" in " ".join(text.get_text() for text in figure.axes[0].texts)


def test_a_gpu_without_a_name(tmp_path: Path) -> None:
    """As from a driver that does not tell, beside one with a name."""
    builder = waiting(tmp_path / "run.tacho")
    builder.gpu(0, None, memory_bytes=0)
    builder.rows["gpu_devices"].append({"device": 1})
    builder.gpu(10_000, None, memory_bytes=GIB)
    document, _ = read_block(report(drawn_up(builder)))
    assert [(each["label"], each["name"]) for each in document["gpu"]] == [("GPU 0", "A GPU"), ("GPU 1", None)]


def test_where_no_gpu_was_read(tmp_path: Path) -> None:
    drawn = picture(tmp_path / "run.tacho", gpu=False)
    assert gpu_document(drawn) is None
    assert draw_gpu(drawn) is None
    page = report(drawn)
    document, _ = read_block(page)
    assert document["gpu"] is None
    assert "total_gpu_share" not in document["lines"]["columns"]


def test_spans_of_which_nothing_is_known() -> None:
    timeline = pd.DataFrame({"time_s": [1.0, 2.0, 3.0], "busy_share": [0.0, 0.5, 1.0]})
    found = busy_by_span(timeline, 0.0, 1.0, 5)
    assert np.isnan([found[0], found[3], found[4]]).all()
    assert found[1:3] == [0.5, 1.0]


def test_long_curves_keep_their_highest_points() -> None:
    points = pd.DataFrame({"time_s": np.arange(1000.0), "memory_bytes": np.arange(1000.0) % 7})
    points.loc[500, "memory_bytes"] = 99.0
    found = thinned(points, 50)
    assert len(found) == 50
    assert found["memory_bytes"].max() == 99.0
    flat = pd.DataFrame({"time_s": np.arange(100.0), "memory_bytes": np.ones(100)})
    assert thinned(flat, 50)["time_s"].tolist() == [0.0, 99.0]

"""The head of a report: terminal, Markdown and page show the same figures and circumstances."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tachograph.analyzer.profile.question import Question
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.render.html.report_page import report
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.header import header
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.report_data.head import (
    circumstances,
    gpu_figures,
    memory_figures,
    pool_figures,
    restrictions,
    time_figures,
    time_parts,
)
from tachograph.analyzer.report_data.report_data import ReportData, build_report_data

VECTORS = Path(__file__).resolve().parents[3] / "format-spec" / "vectors"


@pytest.fixture(scope="module", params=["memory", "gpu", "pools", "tree", "weights"])
def data(request: pytest.FixtureRequest) -> ReportData:
    with Recording.open(VECTORS / f"{request.param}.tacho") as recording:
        return build_report_data(recording, Question(start_s=0.0))


def words(text: str) -> str:
    """A text with single blanks, as it is read however it was wrapped."""
    return re.sub(r"\s+", " ", text)


def test_all_figures_are_in_terminal_and_markdown(data: ReportData) -> None:
    profile = data.profile
    terminal = words(" ".join(line.plain for line in header(profile, Style(colour=False, unicode=True), 200)))
    markdown = words(summary(profile, 20_000))
    figures = [*time_figures(profile), *memory_figures(profile), *gpu_figures(profile), *pool_figures(profile)]
    assert len(figures) >= 5
    for figure in figures:
        text = " ".join(filter(None, (figure.value, figure.text)))
        assert text in terminal
        assert text in markdown
    for fact in circumstances(profile):
        assert fact in terminal
        assert fact in markdown
    assert restrictions(profile) == ["only from 0 s on"]
    assert "only from 0 s on" in markdown


def test_figures_with_a_label_are_on_the_page(data: ReportData) -> None:
    profile = data.profile
    page = html.unescape(report(data))
    shown = re.findall(r"<dt>([^<]*)</dt><dd><b>([^<]*)</b><small>([^<]*)</small>", page)
    figures = [*time_figures(profile), *memory_figures(profile), *gpu_figures(profile), *pool_figures(profile)]
    assert sorted(shown) == sorted((each.label, each.value, each.hint) for each in figures if each.label)
    for fact in (*circumstances(profile), *restrictions(profile)):
        assert f"<span>{fact}</span>" in page


def test_parts_of_the_time_are_those_of_the_totals(data: ReportData) -> None:
    totals = data.profile.totals
    parts = {part.name: part for part in time_parts(data.profile)}
    shares = [part.share for part in parts.values() if part.share is not None]
    assert sum(shares) == pytest.approx(1.0 if totals.cpu_s > 0 else 0.0)
    assert parts.get("wait") is None or parts["wait"].share is None

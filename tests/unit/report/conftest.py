from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer import Profile, Question
from tachograph.analyzer.report_data.report_data import ReportData, build_report_data
from unit.analyzer.recordings import Builder


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "run.tacho")


@pytest.fixture
def answer(builder: Builder) -> Callable[..., Profile]:
    """Writes what was built, and answers a question about it."""
    return builder.answer


@pytest.fixture
def picture(builder: Builder) -> Callable[..., ReportData]:
    """Writes what was built, and draws it up under a question."""

    def answer(**question: Any) -> ReportData:
        with builder.opened() as recording:
            return build_report_data(recording, Question(**question))

    return answer

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer import Question, Recording, build_profile
from tachograph.analyzer.report_data.report_data import Picture, draw_up
from unit.analyzer.recordings import Builder


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "run.tacho")


@pytest.fixture
def picture(builder: Builder) -> Callable[..., Picture]:
    """Writes what was built, and draws it up under a question."""

    def answer(**question: Any) -> Picture:
        if not builder.path.exists():
            builder.write()
        with Recording.open(builder.path) as recording:
            return draw_up(recording, build_profile(recording, Question(**question)))

    return answer

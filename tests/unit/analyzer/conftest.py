from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer import Profile, Question, Recording, build_profile
from unit.analyzer.recordings import Builder


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "run.tacho")


@pytest.fixture
def profile(builder: Builder) -> Callable[..., Profile]:
    """Writes what was built, and answers a question about it."""

    def answer(**question: Any) -> Profile:
        if not builder.path.exists():
            builder.write()
        with Recording.open(builder.path) as recording:
            return build_profile(recording, Question(**question))

    return answer

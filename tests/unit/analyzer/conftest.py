from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tachograph.analyzer import Profile
from unit.analyzer.recordings import Builder


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path / "run.tacho")


@pytest.fixture
def profile(builder: Builder) -> Callable[..., Profile]:
    """Writes what was built, and answers a question about it."""
    return builder.answer

"""Reads recordings and draws conclusions from them: open, reduce, attribute, summarise, show.

>>> import tachograph.analyzer
>>> with tachograph.analyzer.open("run.tacho") as recording:
...     lines = recording.lines(scope="project")
>>> lines[["file", "line", "cpu_s"]].head()

Names are imported when they are used, so that the package itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import fleet
    from .api import Recording, open  # noqa: A004
    from .profile.build import build_profile
    from .profile.profile import Profile
    from .profile.question import Question
    from .recording.question_options import Attribution

__all__ = ["Attribution", "Profile", "Question", "Recording", "build_profile", "fleet", "open"]

_HOMES = {
    "Attribution": "recording.question_options",
    "Profile": "profile.profile",
    "Question": "profile.question",
    "Recording": "api",
    "build_profile": "profile.build",
    "open": "api",
}


def __getattr__(name: str) -> object:
    if name == "fleet":
        return import_module(".fleet", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

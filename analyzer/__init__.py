"""Reads recordings and draws conclusions from them: open, reduce, attribute, summarise, show.

>>> from tachograph.analyzer import Question, Recording, build_profile
>>> with Recording.open("run.tacho") as recording:
...     profile = build_profile(recording, Question(scope="project"))
>>> profile.lines[["file", "line", "cpu_s"]].head()

Names are imported when they are used, so that the package itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .attribution import Attribution
    from .build import build_profile
    from .profile import Profile, Question
    from .recording import Recording

__all__ = ["Attribution", "Profile", "Question", "Recording", "build_profile"]

_HOMES = {
    "Attribution": "attribution",
    "Profile": "profile",
    "Question": "profile",
    "Recording": "recording",
    "build_profile": "build",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

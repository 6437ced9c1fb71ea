"""The JSON documents of ``analyze --tree`` and ``analyze --line`` (docs/reference/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from ..profile.call_branches import Branch, LineCalls
from ..profile.profile import Profile
from .json_document import VERSION

_PLAIN = tuple(each.name for each in fields(Branch) if each.name not in ("children", "module"))


def tree_document(profile: Profile, branches: Sequence[Branch]) -> dict[str, Any]:
    """The call tree of a program."""
    return {**_head(profile, "tree"), "calls": _rows(branches)}


def line_document(profile: Profile, calls: LineCalls) -> dict[str, Any]:
    """What a line spent its time in."""
    line = {name: value for name, value in _row(calls.whole).items() if name.endswith(("_s", "_bytes"))}
    place = {"file": calls.file, "line": calls.line, "source": calls.source}
    return {**_head(profile, "line"), "line": {**place, **line}, "calls": _rows(calls.whole.children)}


def _head(profile: Profile, document: str) -> dict[str, Any]:
    return {
        "tachograph": {"document": document, "version": VERSION},
        "recording": asdict(profile.metadata),
        "question": {**asdict(profile.question), "scope": profile.scope, "scope_widened": profile.widened},
        "totals": {"cpu_s": profile.totals.cpu_s},
        "native_paths": dict(profile.paths.states) if profile.paths.recorded else None,
    }


def _rows(branches: Sequence[Branch]) -> list[dict[str, Any]]:
    return [{"depth": depth, **_row(each)} for branch in branches for depth, each in branch.walk()]


def _row(branch: Branch) -> dict[str, Any]:
    return {name: getattr(branch, name) for name in _PLAIN}

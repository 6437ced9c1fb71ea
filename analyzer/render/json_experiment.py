"""The JSON document of ``tachograph compare --json``; its names are kept stable."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ..report_data.difference import NOT_JUDGED
from ..report_data.experiment import Answer, Effect, FunctionEffect

VERSION = 1
"""Version of the document; names are only ever added to a version."""


def document(answer: Answer) -> dict[str, Any]:
    """What is known, as Python objects: shares and changes are relative (0.05 is 5 %), None is unknown."""
    return {
        "tachograph": {"document": "compare", "version": VERSION},
        "verdict": answer.verdict,
        "sentence": answer.sentence,
        "effect": None if answer.effect is None else _effect(answer.effect),
        "place": None if answer.place is None else _function(answer.place),
        "decided_by": _decided_by(answer),
        "could_have_seen": {each.metric.name: each.visible for each in answer.effects},
        "effects": [_effect(each) for each in answer.effects],
        "functions": [_function(each) for each in answer.functions],
        "pairs": answer.pairs,
        "busy": answer.busy,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {**_known(asdict(effect)), "metric": effect.metric.name, "unit": effect.metric.unit}


def _function(function: FunctionEffect) -> dict[str, Any]:
    return _known({**asdict(function), "could_have_seen": function.visible})


def _decided_by(answer: Answer) -> str | None:
    """``function`` if only a function's own time made the verdict, ``whole`` if an amount of the whole program did."""
    if answer.verdict == NOT_JUDGED:
        return None
    return "function" if answer.by_function else "whole"


def _known(values: dict[str, Any]) -> dict[str, Any]:
    """The values, without the numbers that JSON does not have."""
    known: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            known[name] = _known(value)
        else:
            known[name] = None if isinstance(value, float) and not math.isfinite(value) else value
    return known

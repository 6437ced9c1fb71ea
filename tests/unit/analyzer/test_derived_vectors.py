"""The analyzer finds in the golden recordings the times that their expected.json has, as the plain reader does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.vectors import VECTORS
from tachograph.analyzer import Question, Recording, build_profile

TIMES = ("cpu", "python", "native", "kernel", "unknown", "wait")
COMPLETE = ("whole", "extra", "memory", "tree", "weights", "signal", "attribution", "lines", "window")
SIGNAL_TIMES = ("cpu", "wait")
"""The recommended attribution, which the answers are of, says nothing of the signal sampler."""


def seconds(amounts: dict[str, Any], names: tuple[str, ...]) -> list[float]:
    return [amounts.get(f"{name}_ns", 0) / 1e9 for name in names]


@pytest.mark.parametrize("name", COMPLETE)
def test_times_by_line(name: str) -> None:
    answer = json.loads((VECTORS / f"{name}.expected.json").read_text(encoding="utf-8"))["derived"]
    names = SIGNAL_TIMES if name in ("signal", "lines") else TIMES
    with Recording.open(VECTORS / f"{name}.tacho") as recording:
        profile = build_profile(recording, Question(scope="all"))
    found = {
        (row["file"], row["line"]): [row[f"{each}_s"] for each in names]
        # Where nothing of a part is known there is nothing to add up either.
        for row in profile.lines.fillna({f"{each}_s": 0.0 for each in TIMES}).to_dict("records")
        if str(row["file"]).startswith("/") and (row["cpu_s"] or row["wait_s"])
    }
    wanted = {(each["file"], each["line"]): seconds(each, names) for each in answer["lines"] if each["file"]}
    assert found.keys() == wanted.keys()
    for place, times in wanted.items():
        assert found[place] == pytest.approx(times, abs=1e-9), place
    assert [getattr(profile.totals, f"{each}_s") or 0.0 for each in names] == pytest.approx(
        seconds(answer["totals"], names), abs=1e-9
    )

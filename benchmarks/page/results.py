"""The results of all benchmarks, as far as there are any."""

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from harness.answers import Answers
from harness.arms import BARE, BARE_AGAIN, is_bare
from harness.report import DETAILS
from harness.store import Row, Store

MEASURED = "measured.txt"
"""In the folder of a benchmark: the day on which its data was measured."""


def printed(text: str) -> str:
    """What a benchmark printed, without its details and the names of its files."""
    lines = text.partition(f"{DETAILS}\n")[0].strip("\n").splitlines()
    return "\n".join(line.rstrip() for line in lines if "results" not in line)


@dataclass(frozen=True)
class Results:
    """The folder of `bench.py`."""

    folder: Path

    def done(self, name: str) -> bool:
        """Whether the benchmark ran to its end."""
        return (self.folder / name / "done").exists()

    def measured(self, name: str) -> str | None:
        """The day on which it was measured, as 2026-11-23; None if that is not known."""
        file = self.folder / name / MEASURED
        return file.read_text(encoding="utf-8").strip() if file.exists() else None

    def known(self, name: str) -> dict[str, dict[str, Any]]:
        """The answers of a survey, by key."""
        return Answers(self.folder / name / "answers.jsonl").known()

    def profilers(self, name: str) -> list[str]:
        """Who was asked in a survey, in the order of asking."""
        return list(
            dict.fromkeys(answer["profiler"] for answer in self.known(name).values() if not is_bare(answer["profiler"]))
        )

    def summary(self, name: str) -> dict[str, Any] | None:
        """The summary of a comparison of arms."""
        file = self.folder / name / "summary.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def rows(self, name: str) -> list[Row]:
        """The rows of a comparison of arms."""
        return Store(self.folder / name).rows()

    def arms(self, name: str) -> list[str]:
        """The arms of a comparison that are not bare."""
        summary = self.summary(name)
        return [] if summary is None else [arm for arm in summary["ratios"] if not is_bare(arm)]

    def figures(self, name: str, file: str) -> list[dict[str, Any]]:
        """The list that a benchmark wrote as JSON."""
        path = self.folder / name / file
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []

    def table(self, name: str) -> str:
        """What the benchmark printed."""
        file = self.folder / name / "table.txt"
        return printed(file.read_text(encoding="utf-8")) if file.exists() else ""

    def versions(self) -> dict[str, str]:
        """The profilers that were asked in surveys, by the first word of their arms' names, with their releases."""
        answers = [line for file in self.folder.glob("*/answers.jsonl") for line in Answers(file).known().values()]
        found = {line["profiler"].split()[0].rstrip(","): str(line.get("version") or "") for line in answers}
        return {name: found[name] for name in sorted(found) if found[name] and not is_bare(name)}

    def has_details(self, name: str) -> bool:
        """Whether the benchmark printed more than `table` gives."""
        file = self.folder / name / "table.txt"
        return file.exists() and DETAILS in file.read_text(encoding="utf-8").splitlines()

    def spread(self, name: str) -> tuple[float, float]:
        """How far the second bare run is from the first: the median over programs in the worst round, and the most.

        What takes part in one round is known no better than that.
        """
        rows = self.rows(name)
        times = {row.key: row.in_program_s for row in rows if row.arm in (BARE, BARE_AGAIN) and row.in_program_s}
        off: dict[int, list[float]] = {}
        for (number, program, arm), seconds in times.items():
            if arm == BARE_AGAIN and (first := times.get((number, program, BARE))):
                off.setdefault(number, []).append(seconds / first - 1)
        if not off:
            return 0.0, 0.0
        return max(abs(median(each)) for each in off.values()), max(abs(one) for each in off.values() for one in each)

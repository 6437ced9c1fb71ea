"""The results of all benchmarks, as far as there are any."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.answers import Answers
from harness.arms import BARE, BARE_AGAIN
from harness.store import Row, Store


@dataclass(frozen=True)
class Results:
    """The folder of `bench.py`."""

    folder: Path

    def done(self, name: str) -> bool:
        """Whether the benchmark ran to its end."""
        return (self.folder / name / "done").exists()

    def known(self, name: str) -> dict[str, dict[str, Any]]:
        """The answers of a survey, by key."""
        return Answers(self.folder / name / "answers.jsonl").known()

    def profilers(self, name: str) -> list[str]:
        """Who was asked in a survey, in the order of asking."""
        return list(
            dict.fromkeys(answer["profiler"] for answer in self.known(name).values() if answer["profiler"] != BARE)
        )

    def summary(self, name: str) -> dict[str, Any] | None:
        """The summary of a comparison of arms."""
        file = self.folder / name / "summary.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    def rows(self, name: str) -> list[Row]:
        """The rows of a comparison of arms."""
        return Store(self.folder / name).rows()

    def arms(self, name: str) -> list[str]:
        """The arms of a comparison that are no bare ones."""
        summary = self.summary(name)
        return [] if summary is None else [arm for arm in summary["ratios"] if arm not in (BARE, BARE_AGAIN)]

    def figures(self, name: str, file: str) -> list[dict[str, Any]]:
        """The list that a benchmark wrote as JSON."""
        path = self.folder / name / file
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []

    def table(self, name: str) -> str:
        """What the benchmark printed."""
        file = self.folder / name / "table.txt"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return "\n".join(line.rstrip() for line in lines if "results" not in line)

"""What tests of suggestions share: rows of a busy line, and what the rules say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tachograph.analyzer import Profile
from tachograph.analyzer.report_data.advice.program import Suggestion
from tachograph.analyzer.report_data.advice.table import suggestions
from unit.analyzer.recordings import MS, START, Builder

Answer = Callable[..., Profile]
SITE = "/usr/lib/python3/site-packages"

APPLY = "import pandas as pd\ndef work(table, f):\n    return table.apply(f, axis=1)\n"


def hot(builder: Builder, source: str, line: int, *callees: int, samples: int = 300, **values: Any) -> None:
    """So many samples of 10 ms on a line of /srv/a.py, in the functions that it called."""
    file = next((n for n, row in enumerate(builder.rows["files"]) if row["path"] == "/srv/a.py"), None)
    code = builder.code(builder.file("/srv/a.py", source) if file is None else file, "work")
    stack = builder.stack((code, line - 1), *((callee, 0) for callee in callees))
    for _ in range(samples):
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS, **values)


def library(builder: Builder, path: str, name: str) -> int:
    """A function of a library."""
    return builder.code(builder.file(path), name)


def found(answer: Answer, **question: Any) -> list[Suggestion]:
    """What the rules that know their case say; those of a kind of work have tests of their own."""
    return [each for each in suggestions(answer(**question)) if each.certainty == "certain"]


def likely(answer: Answer) -> list[Suggestion]:
    """What the general rules say."""
    return [each for each in suggestions(answer()) if each.certainty == "likely"]


def rules(answer: Answer, **question: Any) -> list[tuple[str, int | None]]:
    return [(each.rule, each.line) for each in found(answer, **question)]

"""Bytes by line against the truth: what the surveys of live and of copied bytes have in common."""

from collections.abc import Sequence
from typing import Any

from harness.survey import key, worst

Known = dict[str, dict[str, Any]]


def errors(known: Known, question: str, profiler: str, truth: str) -> dict[str, float]:
    """Error in percent of what is said of each named line; nothing if the profiler did not answer.

    `truth` is the part of the answer that has the true bytes by name.
    """
    answer = known.get(key(question, profiler), {})
    if answer.get("said") is None:
        return {}
    true: dict[str, float] = answer[truth]
    return {name: 100.0 * (answer["said"][name] - size) / size for name, size in true.items()}


def table(known: Known, question: str, profilers: Sequence[str], names: Sequence[str], truth: str) -> str:
    """Error in percent for each named line, and the worst of them."""
    lines = [f"{'':<22}" + "".join(f"{name:>12}" for name in names) + f"{'worst':>12}"]
    for profiler in profilers:
        found = errors(known, question, profiler, truth)
        cells = "".join(f"{found[name]:>+10.2f} %" for name in names) if found else ""
        outcome = known.get(key(question, profiler), {}).get("outcome", "-")
        lines.append(f"{profiler:<22}" + (cells + worst(found, "10.2f") + " %" if found else f"  {outcome}"))
    return "\n".join(lines)

"""Own times as cProfile tells them, and less what tracing a call takes.

The events of a call fall on two functions: from its beginning to its end on the callee, what is before and after on the
caller. How the cost is divided is measured by empty calls (programs/empty_calls.py); how large it is, by a bare run of
the program, where calls find other things in the caches than in a loop.
"""

from __future__ import annotations

import pstats
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BUILT_IN = "~"
"""Where cProfile says that functions in C are from."""


@dataclass(frozen=True)
class EventCost:
    """Seconds that tracing a call adds to the own times of the function, and of its caller."""

    callee_s: float
    caller_s: float


@dataclass(frozen=True)
class TracingCost:
    """What tracing adds for a call of a function in Python, and of one in C."""

    python: EventCost
    c: EventCost


@dataclass(frozen=True)
class Call:
    """How often, and with which own time, one function was called by another; a name is that of its code."""

    callee: str
    caller: str
    in_c: bool
    calls: int
    own_s: float


class Traced:
    """What cProfile wrote of one run."""

    def __init__(self, recording: Path) -> None:
        """Read it."""
        self.own_s: Counter[str] = Counter()
        """By function in Python, without those in C that it calls."""
        self.calls: list[Call] = []
        for (file, _, name), (_, _, own, _, callers) in pstats.Stats(str(recording)).stats.items():  # type: ignore[attr-defined]
            if file != BUILT_IN:
                self.own_s[name] += own
            self.calls += [
                Call(name, caller, file == BUILT_IN, calls, inside)
                for (_, _, caller), (_, calls, inside, _) in callers.items()
            ]

    def own_with_c(self) -> Counter[str]:
        """Own seconds of functions in Python, with those of the functions in C that they call."""
        own = Counter(self.own_s)
        for call in self.calls:
            if call.in_c:
                own[call.caller] += call.own_s  # type: ignore[assignment]
        return own

    def less(self, cost: TracingCost, bare_s: float) -> dict[str, float]:
        """The same less what tracing took, where a bare run took ``bare_s``; none is less than 0."""
        own = self.own_with_c()
        added: Counter[str] = Counter()
        for name, seconds in self._added(cost):
            added[name] += seconds  # type: ignore[assignment]
        predicted = sum(added.values())
        scale = max(sum(own.values()) - bare_s, 0.0) / predicted if predicted else 0.0
        return {name: max(seconds - scale * added[name], 0.0) for name, seconds in own.items()}

    def _added(self, cost: TracingCost) -> Iterator[tuple[str, float]]:
        for call in self.calls:
            if call.in_c:
                yield call.caller, call.calls * (cost.c.callee_s + cost.c.caller_s)
            else:
                yield call.caller, call.calls * cost.python.caller_s
                yield call.callee, call.calls * cost.python.callee_s


def tracing_cost(traced: Traced, bare: dict[str, float], count: int) -> TracingCost:
    """From a run of programs/empty_calls.py under cProfile, and one without: seconds of each of its loops."""
    loop_s = bare["no_call"]
    python = EventCost(
        (traced.own_s["empty"] - (bare["python_call"] - loop_s)) / count,
        (traced.own_s["python_call"] - loop_s) / count,
    )
    within = sum(call.own_s for call in traced.calls if call.caller == "c_call")
    c = EventCost((within - (bare["c_call"] - loop_s)) / count, (traced.own_s["c_call"] - loop_s) / count)
    return TracingCost(python, c)

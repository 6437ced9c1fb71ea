"""How often functions were called, for the formats that can say so."""

from __future__ import annotations

import numpy as np

from ..conclusions.calls.call_estimates import estimate_calls
from ..conclusions.calls.call_facts import read_call_facts
from .extract import Extract
from .frames import FrameTree


def call_counts(extract: Extract, tree: FrameTree) -> dict[int, int]:
    """By function of ``tree`` its calls, estimated where it was not watched all the time; functions in scope only.

    Empty where no calls were watched, or of one thread only: they are not known by thread.

    Errors:
        FormatError: the recording is damaged.
    """
    if not extract.all_threads:
        return {}
    facts = read_call_facts(extract.recording, extract.calls, extract.window, extract.processes)
    if facts is None:
        return {}
    # The functions of a tree begin with those of its call tree.
    estimates = estimate_calls(facts)
    known = np.where(np.isnan(estimates.calls), estimates.low, estimates.calls)
    calls = np.bincount(facts.function, known, len(tree.functions))
    return {number: round(calls[number]) for number in frames_of_functions(tree) if calls[number] >= 0.5}


def frames_of_functions(tree: FrameTree) -> dict[int, int]:
    """By function the frame of it that has no line, where there is one: what was recorded of all of its calls."""
    return {frame.function: number for number, frame in enumerate(tree.frames) if frame.line is None}

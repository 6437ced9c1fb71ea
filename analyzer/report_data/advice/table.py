"""All rules, in one table, and what they say about a profile."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ...profile.profile import Profile
from ...recording.call_tree import NOTHING
from ...recording.text import printable
from .general import kinds
from .program import PAGE, Finding, Parsed, Program, Rule, Suggestion
from .rules import (
    collections,
    compiled_code,
    copied_text,
    data_frames,
    databases,
    each_value,
    faster_forms,
    few_of_many,
    figures,
    fixtures,
    libraries,
    memory,
    models,
    numpy_arrays,
    repeated_work,
    same_expression,
    same_result,
    scans,
    small_arrays,
    threads,
    waiting,
)

RULES: tuple[Rule, ...] = (
    *each_value.RULES,
    *data_frames.RULES,
    *few_of_many.RULES,
    *numpy_arrays.RULES,
    *copied_text.RULES,
    *collections.RULES,
    *repeated_work.RULES,
    *scans.RULES,
    *same_result.RULES,
    *same_expression.RULES,
    *small_arrays.RULES,
    *libraries.RULES,
    *compiled_code.RULES,
    *figures.RULES,
    *models.RULES,
    *faster_forms.RULES,
    *memory.RULES,
    *databases.RULES,
    *waiting.RULES,
    *threads.RULES,
    *fixtures.RULES,
    *kinds.RULES,
)
"""The more special ones first: a line has one suggestion."""

MAX_PER_RULE = 3


class Advice:
    """Suggestions for the answers that one command gives.

    An answer is looked at once, however many outputs show it, and a source text is parsed once for all answers.
    """

    def __init__(self) -> None:
        self._parsed = Parsed()
        self._by_profile: WeakKeyDictionary[Profile, list[Suggestion]] = WeakKeyDictionary()

    def about(self, profile: Profile) -> list[Suggestion]:
        """The ``suggestions`` about a profile."""
        if profile not in self._by_profile:
            self._by_profile[profile] = suggestions(profile, self._parsed)
        return self._by_profile[profile]


def suggestions(profile: Profile, parsed: Parsed | None = None) -> list[Suggestion]:
    """Suggestions of all rules, at most one for each line, those about the largest part of the run first."""
    program = Program(profile, parsed or Parsed())
    findings: list[tuple[Finding, Rule]] = []
    taken = program.told
    for rule in RULES:
        of_rule = sorted(rule.find(program), key=lambda finding: -finding.weight)
        for finding in of_rule[:MAX_PER_RULE]:
            place = (finding.file_id, finding.line)
            if finding.line is not None and place in taken:
                continue
            taken[place] = rule.id
            findings.append((finding, rule))
    findings.sort(key=lambda each: -each[0].weight)
    paths = profile.calls.tree.paths
    return [
        Suggestion(
            rule.id,
            None if finding.file_id == NOTHING else printable(paths[finding.file_id], 4096),
            finding.line,
            None if finding.function is None else printable(finding.function),
            printable(finding.figure, 200),
            printable(finding.text, 400),
            printable(finding.instead, 400),
            f"{PAGE}#{rule.id}",
            "likely" if rule.likely else "certain",
        )
        for finding, rule in findings
    ]

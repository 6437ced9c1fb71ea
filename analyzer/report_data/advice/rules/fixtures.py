"""A rule about tests: what pytest sets up for each of them could be set up once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....profile.profile import Profile
from ....recording.frame import Row
from ....source_code.names import Names
from ...numbers import percent, seconds
from ..program import Finding, Program, Rule

FIXTURE_SHARE = 0.20
"""A fixture's part of the CPU time, with all that it calls, at the low end of its interval."""

ALONE_SHARE = 0.40
"""And where the phases of the tests were not recorded."""

LEAST_TESTS = 5

_FOR_EACH_TEST = {
    "tmp_path": "tmp_path_factory",
    "tmpdir": "tmpdir_factory",
    "monkeypatch": "pytest.MonkeyPatch.context()",
}
"""Fixtures of pytest that only a fixture of each test may use, and what a wider one uses instead."""


def fixture_each_test(program: Program) -> Iterator[Finding]:
    """``@pytest.fixture`` without a scope that takes more time than the tests themselves."""
    setups = _setups(program.profile)
    if setups is None and _phases(program.profile):
        return
    functions = program.profile.frames.functions
    low = functions["total_cpu_share_low"]
    for number in (low >= FIXTURE_SHARE).nonzero()[0].tolist():
        row = functions.row(number)
        names = program.names(row["file_id"]) if row["line"] is not None else None
        fixture = None if names is None else _fixture(names, row["line"])
        if fixture is None:
            continue
        used = _tests_with(names, fixture.name) if names is not None else 0
        if setups is None and (used < LEAST_TESTS or row["total_cpu_share_low"] < ALONE_SHARE):
            continue
        of_tests = f"{used} tests of this file use it"
        if setups is not None:
            of_tests = f"{setups[0]} tests took {seconds(setups[1])} to set up and {seconds(setups[2])} to run"
        instead = [
            f"{_FOR_EACH_TEST[each.arg]} in place of {each.arg}"
            for each in fixture.args.args
            if each.arg in _FOR_EACH_TEST
        ]
        yield Finding(
            float(row["total_cpu_share"]),
            f"{percent(row['total_cpu_share'])} % of the CPU time ({seconds(row['total_cpu_s'])}) in this fixture:"
            f" {of_tests}",
            f"“{fixture.name}” is made anew for each test that uses it.",
            'if tests leave it as it is, @pytest.fixture(scope="module") or scope="session"'
            + (f", with {' and '.join(instead)}" if instead else ""),
            row["file_id"],
            fixture.lineno,
            fixture.name,
        )


def _tests_with(names: Names, fixture: str) -> int:
    """The number of tests of a file that take a fixture, by its name or by other fixtures that take it."""
    functions = [each for each in names.module.parent if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    having = {fixture}
    for _ in range(3):
        fixtures = (each for each in functions if each.decorator_list)
        having |= {each.name for each in fixtures if having & {given.arg for given in each.args.args}}
    tests = [each for each in functions if each.name.startswith("test")]
    return sum(bool(having & {given.arg for given in each.args.args}) for each in tests)


def _phases(profile: Profile) -> dict[str, Row]:
    """The phases of the tests by name; empty if they were not recorded."""
    phases = {} if profile.frames.spans is None else {row["name"]: row for row in profile.frames.spans.rows()}
    return phases if {"setup", "call", "teardown"} <= set(phases) else {}


def _setups(profile: Profile) -> tuple[int, float, float] | None:
    """How many tests were set up, and seconds of that and of the tests themselves; None if that is the smaller part."""
    phases = _phases(profile)
    if not phases:
        return None
    count, setup_s, call_s = phases["setup"]["count"], phases["setup"]["duration_s"], phases["call"]["duration_s"]
    return (int(count), setup_s, call_s) if count >= LEAST_TESTS and setup_s > call_s else None


def _fixture(names: Names, line: int) -> ast.FunctionDef | None:
    """The function whose first decorator is on a line, if it is a fixture of each test."""
    for node in names.module.parent:
        if not isinstance(node, ast.FunctionDef) or line not in {each.lineno for each in node.decorator_list[:1]}:
            continue
        for each in node.decorator_list:
            scoped = isinstance(each, ast.Call) and (
                each.args or any(keyword.arg in (None, "scope") for keyword in each.keywords)
            )
            if names.decorator(each) in ("pytest.fixture", "pytest_asyncio.fixture") and not scoped:
                return node
    return None


RULES = (
    Rule(
        "fixture-each-test",
        "CPU time of functions, and their decorators and tests in the source; spans of pytest's phases (--tachograph)",
        "20 % of the CPU time in a fixture without a scope, of 5 tests or more that took longer to set up than to run;"
        " 40 % where the phases were not recorded",
        fixture_each_test,
    ),
)

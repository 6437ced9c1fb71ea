"""A rule about tests: what pytest sets up for each of them could be set up once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....profile.profile import Profile
from ....source_code.names import Names
from ...numbers import percent, seconds
from ..program import Finding, Program, Rule

FIXTURE_SHARE = 0.20
"""A fixture's part of the CPU time, with all that it calls, at the low end of its interval."""

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
    if setups is None:
        return
    count, setup_s, call_s = setups
    functions = program.profile.frames.functions
    low = functions["total_cpu_share_low"]
    for number in (low >= FIXTURE_SHARE).nonzero()[0].tolist():
        row = functions.row(number)
        names = program.names(row["file_id"]) if row["line"] is not None else None
        fixture = None if names is None else _fixture(names, row["line"])
        if fixture is None:
            continue
        instead = [
            f"{_FOR_EACH_TEST[each.arg]} in place of {each.arg}"
            for each in fixture.args.args
            if each.arg in _FOR_EACH_TEST
        ]
        yield Finding(
            float(row["total_cpu_share"]),
            f"{percent(row['total_cpu_share'])} % of the CPU time ({seconds(row['total_cpu_s'])}) in this fixture:"
            f" {count} tests took {seconds(setup_s)} to set up and {seconds(call_s)} to run",
            f"“{fixture.name}” is made anew for each test that uses it.",
            'if tests leave it as it is, @pytest.fixture(scope="module") or scope="session"'
            + (f", with {' and '.join(instead)}" if instead else ""),
            row["file_id"],
            fixture.lineno,
            fixture.name,
        )


def _setups(profile: Profile) -> tuple[int, float, float] | None:
    """How many tests were set up, and seconds of that and of the tests themselves; None if that is the smaller part."""
    if profile.frames.spans is None:
        return None
    phases = {row["name"]: row for row in profile.frames.spans.rows()}
    if not {"setup", "call", "teardown"} <= set(phases):
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
        "spans of pytest's phases (pytest --tachograph), CPU time of functions, and their decorators in the source",
        "20 % of the CPU time in a fixture without a scope, of 5 tests or more that took longer to set up than to run",
        fixture_each_test,
    ),
)

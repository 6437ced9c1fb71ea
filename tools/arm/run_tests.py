"""Runs the tests of a root a file at a time, and keeps what came of each: a run that was cut short goes on there."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from .enclosed import command
from .root import BUILD, CHECKOUT, INSIDE

SUITES = ("tests/native", "tests/oracle", "tests/integration", "tests/unit/recorder", "tests/unit/format", "tests/unit")
"""In this order: first what depends on the processor."""
MARKS = "not slow and not quiet"
MOST_S = 1200.0
"""What a file may take. Python runs 7 to 15 times slower than bare."""


@dataclass
class Outcome:
    """What came of a file of tests."""

    file: str
    digest: str
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    problem: str = ""

    @property
    def settled(self) -> bool:
        """Whether it need not run again while nothing has changed."""
        return not self.failed and not self.problem


class Results:
    """The outcomes of a root, in a file."""

    def __init__(self, version: str) -> None:
        self.path = BUILD / f"results-{version}.json"
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.outcomes = {name: Outcome(**each) for name, each in known.items()}

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome; a run that is killed now loses nothing."""
        self.outcomes[outcome.file] = outcome
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({name: asdict(each) for name, each in self.outcomes.items()}, indent=1))
        new.replace(self.path)


def test_files(places: Sequence[str]) -> list[str]:
    """Files of tests below some places, each once, in the order of the places."""
    found: dict[str, None] = {}
    for place in places or SUITES:
        path = CHECKOUT / place
        each = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        found.update(dict.fromkeys(str(file.relative_to(CHECKOUT)) for file in each))
    return list(found)


def digest_of(file: str, root: Path) -> str:
    """Of a file of tests and of what is installed: when one of them changes, its tests run again."""
    installed = (root / ".installed").stat().st_mtime_ns
    return hashlib.sha256((CHECKOUT / file).read_bytes() + str(installed).encode()).hexdigest()[:16]


def run_file(root: Path, version: str, file: str, options: Sequence[str], most_s: float = MOST_S) -> Outcome:
    """Run the tests of a file."""
    name = file.replace("/", "-").removesuffix(".py")
    report = BUILD / f"tests-{version}" / f"{name}.xml"
    log = report.with_suffix(".log")
    report.unlink(missing_ok=True)
    outcome = Outcome(file, digest_of(file, root))
    words = [
        *(f"/usr/bin/python{version}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "support.emulated"),
        *("-m", MARKS, f"--junit-xml={INSIDE}/build/{report.name}", file, *options),
    ]
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command(root, version, words, PYTHONPATH=f"{INSIDE}/tests"), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            status = process.wait(most_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            outcome.problem = f"longer than {most_s:.0f} s"
            status = 0
    outcome.seconds = round(time.monotonic() - began, 1)
    if report.exists():
        read_report(report, outcome)
    elif not outcome.problem:
        outcome.problem = f"pytest ended with {status} and no report: {log}"
    return outcome


def read_report(report: Path, outcome: Outcome) -> None:
    """Put what pytest's report in XML says into an outcome."""
    for case in ET.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed.append(name)
        elif skipped is not None:
            outcome.skipped.append((name, skipped.get("message", "")))
        else:
            outcome.passed += 1


def run_all(
    root: Path, version: str, files: Sequence[str], *, until: float, jobs: int, options: Sequence[str] = ()
) -> tuple[list[Outcome], list[str]]:
    """Run files until a time of time.monotonic(); what came of each, and the files that were not begun."""
    results = Results(version)
    left: list[str] = []
    outcomes: list[Outcome] = []

    def run(file: str) -> None:
        known = results.outcomes.get(file)
        if known and known.settled and known.digest == digest_of(file, root) and not options:
            outcomes.append(known)
            return
        if time.monotonic() >= until:
            left.append(file)
            return
        outcome = run_file(root, version, file, options)
        outcomes.append(outcome)
        if not options:
            results.add(outcome)
        print(_line(outcome), flush=True)

    _in_threads(run, files, jobs)
    return outcomes, left


def _in_threads(function: Callable[[str], None], items: Sequence[str], jobs: int) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(function, items))


def _line(outcome: Outcome) -> str:
    counts = f"{outcome.passed} passed, {len(outcome.failed)} failed, {len(outcome.skipped)} skipped"
    return f"{outcome.file}: {counts}, {outcome.seconds:.0f} s {outcome.problem}".rstrip()


def summary(outcomes: Sequence[Outcome], left: Sequence[str]) -> str:
    """What failed, what was skipped and why, what was not begun, and the sum."""
    lines = [f"failed: {each.file} {name}" for each in outcomes for name in each.failed]
    lines += [f"failed: {each.file}: {each.problem}" for each in outcomes if each.problem]
    reasons: dict[str, int] = {}
    for each in outcomes:
        for _name, reason in each.skipped:
            reasons[reason] = reasons.get(reason, 0) + 1
    lines += [f"skipped: {count:4} {reason}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1])]
    lines += [f"not begun: {file}" for file in left]
    passed, failed = sum(each.passed for each in outcomes), sum(len(each.failed) for each in outcomes)
    skipped = sum(len(each.skipped) for each in outcomes)
    seconds = sum(each.seconds for each in outcomes)
    lines.append(
        f"{passed} passed, {failed} failed, {skipped} skipped in {len(outcomes)} files, {seconds:.0f} s of tests"
    )
    return "\n".join(lines)

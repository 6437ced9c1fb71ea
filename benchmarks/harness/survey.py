"""One question, put to every profiler: the frame that the accuracy benchmarks have in common.

A survey has questions (a program with arguments each) and asks each of them of every profiler that can answer, in
turns, keeping each answer at once; an interrupted survey goes on where it was.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.answers import Answers, Subject, ask, subjects
from harness.arms import BARE, is_bare
from harness.errors import BenchmarkError
from harness.interleave import progress
from harness.peers import Peer

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "build" / "benchmarks" / "peers"
"""Where the virtual environments of the peers are."""
Function = TypeVar("Function", bound=Callable[..., object])
Read = Callable[[Peer, Path, Path], object]
"""What a profiler says of a run: from itself, what it wrote, and the folder of its commands."""


@dataclass(frozen=True)
class Question:
    """A program and its arguments; the path of its report is added. `facts` are kept with each answer."""

    name: str
    program: list[str]
    facts: dict[str, Any] = field(default_factory=dict)


def options(who: str, results: str) -> Callable[[Function], Function]:
    """The options that every survey has. `who` says which peers are asked, `results` is the default folder's name."""
    chosen = [
        click.option("--peers", default="all", show_default=True, help=f"Comma-separated; {who}."),
        click.option(
            "--timeout", type=float, default=60.0, show_default=True, help="Seconds after which a run is given up."
        ),
        click.option(
            "--results",
            type=click.Path(path_type=Path, file_okay=False),
            default=ROOT / "results" / results,
            help=f"Default: results/{results}.",
        ),
        click.option("--fresh", is_flag=True, help="Forget earlier results."),
    ]

    def decorate(function: Function) -> Function:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


class Survey:
    """The answers in a folder, and who is asked."""

    def __init__(
        self, peers: str, tells: Callable[[Peer], list[str]], timeout_s: float, results: Path, *, fresh: bool
    ) -> None:
        """`peers` is a comma-separated list; `tells` names the arms of a peer that can answer."""
        self._answers = Answers(results / "answers.jsonl")
        if fresh:
            self._answers.clear()
        self._timeout_s = timeout_s
        self.subjects = subjects(peers, ENVIRONMENTS, tells)

    @property
    def profilers(self) -> list[str]:
        """The names of those who are asked, without the bare program."""
        return [subject.arm.name for subject in self.subjects if not is_bare(subject.arm.name)]

    def known(self) -> dict[str, dict[str, Any]]:
        """Answers by `key`."""
        return self._answers.known()

    def try_bare(self, program: list[str], *options: str) -> dict[str, Any]:
        """The report of one run of the bare program that is not part of the survey; `options` come behind its path."""
        report = ask(self.subjects[0], program, lambda *_: None, self._timeout_s, options)["report"]
        if report is None:
            raise BenchmarkError(f"{Path(program[0]).name} does not run bare")
        return report  # type: ignore[no-any-return]

    def ask_all(self, questions: Iterable[Question], read: Read, *, bare: bool = True, profilers: bool = True) -> None:
        """Asks what has not been answered yet; the bare program and the profilers only if they are wanted."""
        who = [subject for subject in self.subjects if (bare if is_bare(subject.arm.name) else profilers)]
        steps = [(question, subject) for question in questions for subject in who]
        known = self.known()
        with progress(len(steps)) as show:
            for done, (question, subject) in enumerate(steps):
                show(done, key(question.name, subject.arm.name))
                if key(question.name, subject.arm.name) not in known:
                    self._ask(question, subject, read)

    def _ask(self, question: Question, subject: Subject, read: Read) -> None:
        answer = ask(subject, question.program, read, self._timeout_s)
        self._answers.append(key(question.name, subject.arm.name), answer | question.facts)


def key(question: str, profiler: str) -> str:
    """What one answer is kept under."""
    return f"{question} {profiler}"


def compared_with(known: Mapping[str, dict[str, Any]], profiler: str) -> str:
    """The bare arm whose report is the truth for a profiler: that of the same interpreter."""
    return next((answer.get("against", BARE) for answer in known.values() if answer.get("profiler") == profiler), BARE)


def true_shares(
    known: Mapping[str, dict[str, Any]],
    wanted: Iterable[int],
    measured: Callable[[dict[str, float]], float],
    bare: str = BARE,
) -> dict[int, float]:
    """Wanted share, which is the question's name, -> what `measured` makes of the bare program's report, if any."""
    reports = {share: known.get(key(str(share), bare), {}).get("report") for share in wanted}
    return {share: measured(report) for share, report in reports.items() if report}


def worst(errors: Mapping[Any, float], form: str) -> str:
    """The error that is farthest from 0, for a table; nothing if there is none."""
    return f"{max(errors.values(), key=abs):+{form}}" if errors else ""


@contextmanager
def complaints(name: str) -> Iterator[None]:
    """A benchmark that cannot go on says why in one line and ends with status 2."""
    try:
        yield
    except BenchmarkError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(2)

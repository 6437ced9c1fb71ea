"""Programs that were not in PieProf's paper: in how many repeated work is found, and in which nothing is.

    python benchmarks/repetitions.py            # all of them, 8 s of CPU time each: half an hour
    python benchmarks/repetitions.py --quick    # four short ones: does it work?
    python benchmarks/repetitions.py --again    # judges the recordings of the last run once more
    python benchmarks/repetitions.py --page     # the page alone, from the last results

Each program is recorded once with `--redundancy`, as it was and mended, and so are programs that repeat nothing. They
are in programs/repetitions, and need NumPy, and some of them pandas, SciPy, scikit-learn and Pillow. Recordings are
kept, so that changed rules can be tried on the same measurements.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from harness.arms import RECORD, Arm
from harness.errors import BenchmarkError
from harness.ours import analysis
from harness.survey import ROOT
from page.one_section import put_section
from page.sections import REPETITIONS
from programs.repetitions.innocent import INNOCENT
from programs.repetitions.of_elements import PAIRS as OF_ELEMENTS
from programs.repetitions.of_libraries import PAIRS as OF_LIBRARIES
from programs.repetitions.of_numpy import PAIRS as OF_NUMPY
from programs.repetitions.program import LIBRARY, marked, packages, script

PAIRS = OF_NUMPY | OF_LIBRARIES | OF_ELEMENTS
QUICK = ("prefix", "window")


@dataclass(frozen=True)
class Judged:
    """A program with the first finding of it; None where there is none."""

    name: str
    category: str | None
    """That it should have; None: no finding."""
    on_line: bool
    found: str | None
    kind: str | None
    least_s: float | None
    line_s: float | None
    passes: int


@click.command()
@click.option("--seconds", type=float, default=8.0, show_default=True, help="CPU time of each program.")
@click.option("--quick", is_flag=True, help="A few short programs, to see that everything works.")
@click.option("--again", is_flag=True, help="Record nothing; judge the recordings of the last run.")
@click.option("--page", "page_alone", is_flag=True, help="Measure nothing; write the page from the results.")
def main(seconds: float, quick: bool, again: bool, page_alone: bool) -> None:
    """In how many programs repeated work is found, and in which nothing is."""
    folder = ROOT / "results" / ("repetitions-quick" if quick else "repetitions")
    try:
        if page_alone:
            print(put_section(REPETITIONS, folder, ROOT / "docs"))
            return
        recordings = folder / "recordings"
        recordings.mkdir(parents=True, exist_ok=True)
        texts = texts_of(QUICK if quick else tuple(PAIRS))
        if not again:
            record(texts, 2.0 if quick else seconds, recordings)
        judged = [judge(name, category, text, recordings / name) for name, (category, text) in texts.items()]
    except BenchmarkError as error:
        print(f"repetitions: {error}", file=sys.stderr)
        sys.exit(2)
    (folder / "programs.json").write_text(json.dumps([asdict(each) for each in judged], indent=1) + "\n")
    text = table(judged)
    (folder / "table.txt").write_text(text + "\n", encoding="utf-8")
    print(text)


def texts_of(names: tuple[str, ...]) -> dict[str, tuple[str | None, str]]:
    """The programs that this Python has the packages for, with the category of what they repeat."""
    texts: dict[str, tuple[str | None, str]] = {name: (PAIRS[name].category, PAIRS[name].text) for name in names}
    texts |= {f"{name}, mended": (None, PAIRS[name].mended) for name in names}
    if len(names) == len(PAIRS):
        texts |= {name: (None, text) for name, text in INNOCENT.items()}
    return {
        name: (category, text)
        for name, (category, text) in texts.items()
        if all(importlib.util.find_spec(each) for each in packages(text))
    }


def record(texts: dict[str, tuple[str | None, str]], seconds: float, recordings: Path) -> None:
    """Records all programs, one after the other; each has a folder, with what it printed."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        library = Path(folder) / "vectors.so"
        done = subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, LIBRARY, "-lm"], check=False)
        if done.returncode:
            raise BenchmarkError("vectors.c does not compile")
        os.environ["LIBRARY"] = str(library)
        for name, (_, text) in texts.items():
            place = recordings / name
            place.mkdir(exist_ok=True)
            (place / "program.py").write_text(script(text), encoding="utf-8")
            arm = Arm(name, f"{RECORD} --redundancy --force")
            command = arm.command([str(place / "program.py"), str(seconds)], place / "recording.tacho")
            done_text = subprocess.run(command, check=False, capture_output=True, text=True)
            if done_text.returncode:
                raise BenchmarkError(f"{name}: {done_text.stderr[-200:]}")
            (place / "passes.txt").write_text(done_text.stdout.split()[-1])


def judge(name: str, category: str | None, text: str, place: Path) -> Judged:
    """Reads a program's first finding from its recording."""
    if not (place / "passes.txt").exists():
        raise BenchmarkError(f"{name} was not recorded")
    found: list[dict[str, Any]] | None = analysis(place / "recording.tacho")["redundancies"]
    if found is None:
        raise BenchmarkError("this machine gives no watchpoints")
    passes = int((place / "passes.txt").read_text())
    if not found:
        return Judged(name, category, on_line=False, found=None, kind=None, least_s=None, line_s=None, passes=passes)
    first = found[0]
    kind, least_s, line_s = (first[each] for each in ("kind", "quantity_s_low", "line_cpu_s"))
    found_as = first["category"] or "not decided"
    return Judged(name, category, first["line"] in marked(text), found_as, kind, least_s, line_s, passes)


def table(judged: list[Judged]) -> str:
    """How many are found, and each program."""
    bad = [each for each in judged if each.category is not None]
    others = [each for each in judged if each.category is None]
    right = sum(each.on_line and each.found == each.category for each in bad)
    lines = [
        f"{'programs that repeat work':<38}{len(bad):>5}",
        f"{'  found, on the right line':<38}{sum(each.on_line for each in bad):>5}",
        f"{'  with the right category':<38}{right:>5}",
        f"{'corrected and innocent programs':<38}{len(others):>5}",
        f"{'  with a finding':<38}{sum(each.found is not None for each in others):>5}",
        "",
        f"{'program':<22}{'category':<30}{'found as':<30}{'by':<8}{'at least, s':>11}{'of, s':>7}",
    ]
    for each in bad + [each for each in others if each.found is not None]:
        least, whole = ("-" if value is None else f"{value:.2f}" for value in (each.least_s, each.line_s))
        found = "-" if each.found is None else each.found
        row = f"{each.name:<22}{each.category or 'none':<30}{found:<30}{each.kind or '-':<8}{least:>11}{whole:>7}"
        lines.append(row)
    return "\n".join(lines)


if __name__ == "__main__":
    main()

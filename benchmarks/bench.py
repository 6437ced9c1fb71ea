"""All benchmarks in one go, then the page of results.

    python benchmarks/bench.py                         # about 80 minutes on two cores
    python benchmarks/bench.py --only overhead,reading # some of them
    python benchmarks/bench.py --only scaling --sections # on the page that is there, and no other
    python benchmarks/bench.py --page                  # the page alone, from the results that there are

Leave the machine alone meanwhile. What has been measured is kept in results/bench, each benchmark in a folder of its
own; a run that was interrupted goes on where it was, and `--fresh` starts over. A benchmark that runs over its bound is
stopped, and the page says so. The page is docs/benchmarks.md, with its figures and data in docs/benchmarks.
"""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import distribution
from pathlib import Path

import click

from harness.survey import ROOT, complaints
from page.one_section import put_measured
from page.results import MEASURED
from page.write import write_page

FOLDER = Path(__file__).resolve().parent
RESULTS = ROOT / "results" / "bench"
DONE = "done"


@dataclass(frozen=True)
class Step:
    """A benchmark: the arguments of its script, the name of its results (a folder if it has no suffix), its bound."""

    script: str
    arguments: tuple[str, ...]
    results: str
    bound_min: float


STEPS = {
    "overhead": Step(
        "overhead.py", ("--rounds", "5", "--peers", "all", "--peer-rounds", "1", "--timeout", "60"), "", 70
    ),
    "side_by_side": Step("side_by_side.py", (), "", 60),
    "on_and_off": Step("on_and_off.py", (), "on_and_off.json", 25),
    "allocation": Step("allocation.py", ("--rounds", "3"), "", 10),
    "scaling": Step(
        "scaling.py",
        ("--rounds", "3", "--peers", "scalene,memray,py-spy", "--peer-rounds", "1"),
        "",
        20,
    ),
    "native_paths": Step("native_paths.py", ("--rounds", "3", "--peer-rounds", "1"), "", 20),
    "redundancy": Step("redundancy.py", (), "", 60),
    "learned_calls": Step("learned_calls.py", ("--no-page",), "", 25),
    "counted_calls": Step("counted_calls.py", ("--peers", "cprofile,yappi,viztracer"), "", 25),
    "cpu_accuracy": Step("cpu_accuracy.py", ("--seconds", "2.5"), "", 15),
    "line_accuracy": Step("line_accuracy.py", (), "", 10),
    "native_share": Step("native_share.py", (), "", 10),
    "delay": Step("delay_simulation.py", (), "delay.json", 2),
    "samplers": Step("samplers.py", ("--seconds", "3"), "samplers.json", 8),
    "memory_accuracy": Step("memory_accuracy.py", (), "", 10),
    "live_bytes": Step("live_bytes.py", (), "", 10),
    "sampling_rate": Step("sampling_rate.py", ("--seconds", "5"), "sampling_rate.json", 8),
    "copy_volume": Step("copy_volume.py", (), "", 5),
    "leak_detection": Step("leak_detection.py", (), "", 10),
    "analyze": Step("analyze.py", ("--samples", "1e5,1e6,1e7,1e8"), "analyze.json", 15),
    "reading": Step("reading.py", ("--seconds", "1,4,10"), "reading.json", 12),
}
OF_STARTS = "overhead"
"""The benchmark that tells what the start of a process costs."""


def is_editable() -> bool:
    """Whether tachograph is imported from this checkout, by a finder that scikit-build-core brings."""
    told = distribution("tachograph").read_text("direct_url.json")
    return bool(told and json.loads(told).get("dir_info", {}).get("editable"))


@click.command()
@click.option("--only", help=f"Comma-separated: {', '.join(STEPS)}.")
@click.option("--page", "page_alone", is_flag=True, help="Measure nothing.")
@click.option("--sections", is_flag=True, help="Put them into the page that is there, and leave its other sections.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
def main(only: str | None, page_alone: bool, sections: bool, fresh: bool) -> None:
    """All benchmarks, and the page of their results."""
    names = list(STEPS) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in STEPS:
            raise click.BadParameter(f"there is no benchmark {name!r}; there are {', '.join(STEPS)}")
    if fresh:
        for name in names:
            shutil.rmtree(RESULTS / name, ignore_errors=True)
    if not page_alone:
        if OF_STARTS in names and not (RESULTS / OF_STARTS / DONE).exists() and is_editable():
            raise click.ClickException(
                "tachograph is installed editable here, so every recorded process imports more: measure one that is "
                "installed (make bench VENV=.venv-bench)"
            )
        for number, name in enumerate(names, 1):
            print(f"{number} of {len(names)}: {name}", flush=True)
            run(name, STEPS[name])
    with complaints("bench"):
        if sections:
            for name in names:
                print(put_measured(name, RESULTS, ROOT / "docs"))
        else:
            print(write_page(RESULTS, ROOT / "docs"))


def run(name: str, step: Step) -> None:
    """Runs a benchmark that is not done yet, for as long as it may take."""
    folder = RESULTS / name
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / DONE).exists():
        return
    target = folder / step.results if step.results else folder
    command = [sys.executable, str(FOLDER / step.script), *step.arguments, "--results", str(target)]
    begin = time.monotonic()
    with (folder / "table.txt").open("w", encoding="utf-8") as output:
        try:
            status = subprocess.run(command, stdout=output, check=False, timeout=60 * step.bound_min).returncode
        except subprocess.TimeoutExpired:
            status = -1
    if status:
        print(f"  {name}: " + ("ran over its bound" if status < 0 else f"failed with status {status}"), file=sys.stderr)
        return
    measured = folder / MEASURED
    if not measured.exists():  # the data may be of an earlier day
        measured.write_text(datetime.now(UTC).date().isoformat() + "\n", encoding="utf-8")
    took = f"{time.monotonic() - begin:.0f} s"
    (folder / DONE).write_text(took + "\n", encoding="utf-8")
    print(f"  {name}: {took}", flush=True)


if __name__ == "__main__":
    main()

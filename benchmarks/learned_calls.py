"""The experiment of the Paikana paper, figures 1 and 2: what learned tracing costs, and how right it is.

    python benchmarks/learned_calls.py                                   # all of it: twenty minutes on a quiet machine
    python benchmarks/learned_calls.py --quick                           # one short round: does it work?
    python benchmarks/learned_calls.py --megabytes 500                   # as large as in the paper
    python benchmarks/learned_calls.py --peers yappi,pyinstrument
    python benchmarks/learned_calls.py --page                            # the page alone, from the last results

A flame graph's HTML is read into a tree, under each profiler, one after another in every round. The distribution of
own time over its functions is compared with a clock that is marked by hand (programs/flame_html.py), and with cProfile
less what it costs itself: Kullback and Leibler's divergence of a profiler's distribution from the true one. What each
costs is measured with all of them side by side, in turns of a quarter of a second. Both figures are drawn beside the
results.

Then programs take turns bare, sampled and with `--calls`: the ten of table 1, and nine that do next to nothing but call
small functions. All of it becomes a section of docs/benchmarks.md.
"""

import json
import math
import os
import platform
import statistics
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from harness.arms import BARE, BARE_AGAIN, RECORD, Arm, beside_bare
from harness.errors import BenchmarkError
from harness.in_turn import Turns, middle
from harness.interleave import progress
from harness.measure import PROGRAMS, RECORDING, start
from harness.ours import analysis, functions
from harness.peers import Shares, load, shares
from harness.peers import installed as installed_peers
from harness.store import ENDED
from harness.survey import ENVIRONMENTS, ROOT, complaints
from harness.tracing_cost import Traced, TracingCost, tracing_cost
from harness.turn_plan import Plan
from learned_calls_cost import CALLS, LOOP, OTHERS, OURS, measure_cost, over_programs, paper_ratios
from learned_calls_figures import draw
from page.one_section import put_section
from page.sections import LEARNED_CALLS
from peers import cprofile
from programs.flame_html import PLAIN

PROGRAM, EMPTY_CALLS = str(PROGRAMS / "flame_html.py"), str(PROGRAMS / "empty_calls.py")
MANY = 500_000
"""Empty calls by which it is measured what tracing one takes."""
CPROFILE = Arm("cProfile", cprofile.PEER.arms["cProfile"], peer=True)
FUNCTIONS = (
    *("read_line", "match_frame", "depth_of", "unescape", "split_title", "split_name", "to_number", "add_node"),
    "Node.__init__",
)
LEAST = 1e-4
"""The share that a function has at least in a profiler's distribution: none is infinitely far from the truth."""
DIVERGENCE = 0.02
"""How far from the truth watched calls may be on the page."""


def counted(recording: Path, _: Path) -> Shares:
    """Own times of functions by their calls."""
    own: Counter[str] = Counter()
    for function in analysis(recording, "--scope", "all")["functions"]:
        if function["language"] == "python" and function["calls"] and function["own_call_mean_s"]:
            own[function["function"]] += function["calls"] * function["own_call_mean_s"]
    # Of a short run no own time may be known.
    return shares(own) if own else {}


def traced(recording: Path, _: Path) -> Shares:
    """What cProfile tells as own times, with those of the C functions that they call."""
    return shares(Traced(recording).own_with_c())


@dataclass(frozen=True)
class Way:
    """A way to run the program: its arm, what the program is told to do, and how to read what was written."""

    arm: Arm
    what: str = "read"
    reader: Callable[[Path, Path], Shares] | None = None


def ours() -> list[Way]:
    """The bare program, and tachograph's ways."""
    return [
        Way(Arm(BARE, "{python}")),
        Way(Arm(BARE_AGAIN, "{python}")),
        Way(Arm("sampling", f"{RECORD} --cpu-only"), reader=functions),
        Way(Arm(LOOP, f"{RECORD} --cpu-only"), "loop", counted),
        Way(Arm("--calls, racing", CALLS), reader=counted),
        Way(Arm("--calls, rejects", f"{CALLS} --calls-choice rejects --calls-top 4"), reader=counted),
        Way(CPROFILE, reader=traced),
    ]


def of_peers(text: str) -> list[Way]:
    """The ways of other profilers that tell functions apart."""
    ways = []
    for peer, python in installed_peers(text, ENVIRONMENTS):
        if peer.functions is not None and peer.bare == BARE:
            ways += [Way(peer.arm(name, python), reader=peer.functions) for name in peer.arms]
    return ways


@dataclass(frozen=True)
class Run:
    """One run, and the shares that the profiler tells."""

    round: int
    name: str
    outcome: str
    said: Shares | None
    corrected: Shares | None = None


@click.command()
@click.option("--megabytes", type=click.FloatRange(min=0.1), default=200.0, show_default=True, help="Size of the page.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Runs of each profiler.")
@click.option("--sets", type=click.IntRange(1), default=6, show_default=True, help="Sets of processes that take turns.")
@click.option("--turns", type=click.IntRange(1), default=4, show_default=True, help="Of each set.")
@click.option("--seconds", type=float, default=0.25, show_default=True, help="CPU time of a turn.")
@click.option("--quick", is_flag=True, help="A few short ones, to see that everything works; no page.")
@click.option(
    "--only",
    "half",
    type=click.Choice(["told", "cost"]),
    help="What profilers tell, or what they cost; the other is that of the last run.",
)
@click.option("--fresh", is_flag=True, help="Forget earlier turns.")
@click.option("--page", "page_alone", is_flag=True, help="Measure nothing; write the page from the results.")
@click.option("--no-page", is_flag=True, help="Leave the page as it is.")
@click.option(
    "--peers",
    default="",
    help="Other profilers, comma-separated (benchmarks/peers), or all; beside cProfile.",
)
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/learned_calls.")
def main(
    megabytes: float,
    rounds: int,
    sets: int,
    turns: int,
    seconds: float,
    quick: bool,
    half: str | None,
    fresh: bool,
    page_alone: bool,
    no_page: bool,
    peers: str,
    timeout: float,
    results: Path | None,
) -> None:
    """Figures 1 and 2 of the paper on Paikana, and what watching calls takes."""
    target = results or ROOT / "results" / ("learned_calls-quick" if quick else "learned_calls")
    target.mkdir(parents=True, exist_ok=True)
    if page_alone:
        with complaints("learned_calls"):
            print(put_section(LEARNED_CALLS, target, ROOT / "docs"))
        return
    if quick:
        megabytes, rounds, sets, turns, seconds = 1.0, 1, 1, 2, 0.02
    with complaints("learned_calls"):
        for name in peers.split(",") if peers not in ("", "all") else []:
            load(name)
        ways = [*ours(), *of_peers(peers)]
        if half != "cost":
            write(target, measure_told(ways, megabytes, rounds, timeout))  # before all that takes longer
        found = of_last_run(target)
        others = ["fannkuch", "recursion"] if quick else OTHERS
        taken = Turns(target / "turns.jsonl")
        if half != "told":
            if fresh or quick:
                taken.clear()
            plan = Plan(sets, turns, seconds, timeout)
            measure_cost(taken, [PLAIN], [way.arm for way in ways], plan)
            measure_cost(taken, others, beside_bare(OURS), plan)
        found["cost"] = paper_ratios(taken.all())
        told = "\n\n".join([busy(found), table(found), over_programs(taken.all(), others)])
        print(told)
        write(target, found)
        (target / "table.txt").write_text(told + "\n", encoding="utf-8")
        draw(found, target)
        if not (quick or no_page):
            print(put_section(LEARNED_CALLS, target, ROOT / "docs"))


def write(target: Path, found: dict[str, Any]) -> None:
    """Keeps what was found."""
    (target / "learned_calls.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def of_last_run(target: Path) -> dict[str, Any]:
    """What the profilers told of the paper's program."""
    kept = target / "learned_calls.json"
    if not kept.exists():
        raise BenchmarkError(f"there is no {kept}: leave --only out")
    return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def measure_told(ways: list[Way], megabytes: float, rounds: int, timeout: float) -> dict[str, Any]:
    """What tachograph and other profilers tell of the paper's program."""
    told = [way for way in ways if way.reader is not None]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return measure(told, Path(folder) / "page.html", megabytes, rounds, timeout)


def busy(found: dict[str, Any]) -> str:
    """What interpreter it was, and how busy the machine."""
    before, after = found["load"], os.getloadavg()
    return (
        f"CPython {platform.python_version()}, {found['megabytes']:g} MB, {os.cpu_count()} processors; processes that "
        f"were ready: {before[0]:.0f} (after the page), {after[0]:.0f} (at the end)"
    )


def measure(ways: list[Way], page: Path, megabytes: float, rounds: int, timeout: float) -> dict[str, Any]:
    """All runs, interleaved, and the truth, measured before and after them."""
    run_bare([PROGRAM, "make", str(page), str(megabytes)], timeout)
    clocks = [PROGRAM, "truth", str(page), str(compiled(PROGRAMS / "boundary_clock.c", page.parent))]
    truths = [run_bare(clocks, timeout)]
    runs: list[Run] = []
    with progress(rounds * len(ways)) as show:
        for number in range(rounds):
            turn = number % len(ways)
            for way in ways[turn:] + ways[:turn]:
                show(len(runs), f"round {number + 1}: {way.arm.name}")
                runs.append(run(number, way, page, timeout))
    truths.append(run_bare(clocks, timeout))
    true = only({name: statistics.mean(each[name] for each in truths) for name in FUNCTIONS})
    return {
        "megabytes": megabytes,
        "load": os.getloadavg(),
        "truth": true,
        "closure": [each["closure"] for each in truths],
        "runs": [asdict(each) for each in runs],
        "summary": summary(runs, true),
    }


def compiled(source: Path, folder: Path) -> Path:
    """The folder, with a module in it that is made of a source in C for this interpreter.

    Errors:
        BenchmarkError: there is no compiler, or it does not take the source.
    """
    module = folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_path("include")
    command = ["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(module)]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchmarkError(f"{source.name} could not be compiled ({error}): the benchmark needs cc") from None
    return folder


@contextmanager
def started(arm: Arm, command: list[str], timeout: float) -> Iterator[tuple[str, dict[str, float], Path]]:
    """A run that has ended: its outcome, what the program reported if it did, and what the profiler wrote."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        report = Path(name) / "report.json"
        _, outcome, where = start(arm, [*command, str(report)], Path(name), None, timeout)
        told = json.loads(report.read_text(encoding="utf-8")) if outcome == ENDED and report.exists() else {}
        yield outcome, told, where / RECORDING


def run_bare(command: list[str], timeout: float) -> dict[str, float]:
    """The report of a bare run that is not part of the comparison."""
    with started(Arm(BARE, "{python}"), command, timeout) as (outcome, told, _):
        must_end(outcome, command)
        return told


def must_end(outcome: str, command: list[str]) -> None:
    """BenchmarkError if a run did not come to its end without which there is nothing to compare."""
    if outcome != ENDED:
        raise BenchmarkError(f"{' '.join(command[1:])} of {Path(command[0]).name}: {outcome}")


def cost_of_cprofile(timeout: float) -> TracingCost:
    """What tracing an empty call takes, here and now."""
    command = [EMPTY_CALLS, str(MANY)]
    bare = run_bare(command, timeout)
    with started(CPROFILE, command, timeout) as (outcome, _, recording):
        must_end(outcome, command)
        return tracing_cost(Traced(recording), bare, MANY)


def run(number: int, way: Way, page: Path, timeout: float) -> Run:
    """One run, and what the profiler says of it."""
    with started(way.arm, [PROGRAM, way.what, str(page)], timeout) as (outcome, told, recording):
        said = less_cost = None
        if told and way.reader is not None:
            said = only(way.reader(recording, Path(way.arm.python).parent)) or None
            if way.arm == CPROFILE:
                # Both are measured now: the machine is not as fast at one time as at another.
                bare_s = run_bare([PROGRAM, "read", str(page)], timeout)["elapsed_s"]
                less_cost = only(Traced(recording).less(cost_of_cprofile(timeout), bare_s))
        return Run(number, way.arm.name, outcome, said, less_cost)


def only(own: Shares) -> Shares:
    """Shares of the functions that the truth is known of, in percent of them all; empty if nothing is told of them."""
    renamed: Counter[str] = Counter()
    for name, value in own.items():
        renamed["Node.__init__" if name in ("__init__", "Node.__init__") else name] += value  # type: ignore[assignment]
    found = {name: float(renamed[name]) for name in FUNCTIONS}
    return shares(found) if any(found.values()) else {}


def divergence(true: Shares, said: Shares) -> float:
    """Kullback and Leibler's divergence of what was said from the truth, in nats."""
    return sum(
        share / 100 * math.log(share / 100 / max(said[name] / 100, LEAST)) for name, share in true.items() if share > 0
    )


def summary(runs: list[Run], true: Shares) -> dict[str, dict[str, float | None]]:
    """Medians of the divergences, by way."""
    found: dict[str, dict[str, float | None]] = {}
    references = [each.corrected for each in runs if each.corrected]
    for name in dict.fromkeys(each.name for each in runs):
        said = [each.said for each in runs if each.name == name and each.said]
        found[name] = {
            "divergence": _median([divergence(true, each) for each in said]),
            "divergence_from_cprofile": _median([divergence(known, each) for each in said for known in references]),
        }
    if references:
        found["cProfile, corrected"] = {"divergence": _median([divergence(true, each) for each in references])}
    return found


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def table(found: dict[str, Any]) -> str:
    """The two figures as tables: CPU times and divergences, then the distributions."""
    lines = [f"{'':<22}{'CPU time, bare = 1':<24}{'KL, truth':>12}{'KL, cProfile':>14}"]
    for name in dict.fromkeys([*found["cost"], *found["summary"]]):
        ratios, each = found["cost"].get(name), found["summary"].get(name, {})
        lines.append(
            f"{name:<22}{middle(ratios) if ratios else '-'!s:<24}"
            + _cell(each.get("divergence"), 12, 4)
            + _cell(each.get("divergence_from_cprofile"), 14, 4)
        )
    lines.append(f"The divergence may be {DIVERGENCE}.")
    lines += ["", f"{'own time, %':<22}" + "".join(f"{name[:13]:>14}" for name in FUNCTIONS)]
    told = {"truth": [found["truth"]]}
    for each in found["runs"]:
        if each["said"]:
            told.setdefault(each["name"], []).append(each["said"])
        if each["corrected"]:
            told.setdefault("cProfile, corrected", []).append(each["corrected"])
    for name, said in told.items():
        means = (statistics.mean(each[key] for each in said) for key in FUNCTIONS)
        lines.append(f"{name:<22}" + "".join(f"{mean:>14.1f}" for mean in means))
    if found.get("closure"):
        parts = " and ".join(f"{each:.3f}" for each in found["closure"])
        lines += ["", f"By the marked clock all own times together are {parts} of the time without it."]
    return "\n".join(lines)


def _cell(value: float | None, width: int, places: int) -> str:
    return f"{value:>{width}.{places}f}" if value is not None else " " * (width - 1) + "-"


if __name__ == "__main__":
    main()

"""What a fleet costs beside the tools that put profiles together: pprof's merge, and HTA for ranks.

    python benchmarks/fleet_peers.py [--hta PYTHON]

pprof (``go tool pprof``) gets the same recordings as files of its own format, which ``tachograph export`` writes before
the clock runs. HTA (Holistic Trace Analysis 0.5, in a Python of its own: ``pip install HolisticTraceAnalysis``) reads
traces of PyTorch's profiler with GPUs. Here they are made, of 8 ranks and 20 steps, and rank 5 comes late to each
all-reduce, as in the recordings of ``tests/integration/programs/ranks.py`` that ``fleet ranks`` gets. A tool that is
not installed is left out.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click

import fleet
from harness import process

RANKS, STEPS, LATE = 8, 20, 5
PROGRAM = Path(__file__).resolve().parents[1] / "tests" / "integration" / "programs" / "ranks.py"
STRAGGLERS = (
    "import sys; from hta.trace_analysis import TraceAnalysis;"
    " found = TraceAnalysis(trace_dir=sys.argv[1]).get_potential_stragglers(num_candidates=1);"
    " open(sys.argv[2], 'w').write(str(found))"
)


@click.command()
@click.option("--recordings", default=100, show_default=True, help="How many recordings pprof puts together.")
@click.option("--hta", type=click.Path(path_type=Path), help="A Python that has HolisticTraceAnalysis.")
def main(recordings: int, hta: Path | None) -> None:
    """See the module."""
    with tempfile.TemporaryDirectory(prefix="tachograph-peers-") as folder:
        beside_pprof(Path(folder), recordings)
        beside_hta(Path(folder), hta)


def beside_pprof(folder: Path, count: int) -> None:
    """One profile of all recordings."""
    if shutil.which("go") is None:
        print("go is not installed: nothing beside pprof")
        return
    recordings = folder / "fleet"
    fleet.make(fleet.record(folder), recordings, count)
    files = []
    for number, path in enumerate(sorted(recordings.glob("*/*.tacho"))):
        files.append(str(folder / f"{number}.pb.gz"))
        command = [sys.executable, "-m", "tachograph", "export", "pprof", str(path), "--output", files[-1]]
        subprocess.run(command, check=True, capture_output=True)
    tachograph = [sys.executable, "-m", "tachograph", "fleet", "top", str(recordings), "--workers", "1", "--json", "-"]
    timed(f"pprof merges {count}", ["go", "tool", "pprof", "-proto", "-output", str(folder / "all.pb.gz"), *files])
    timed("pprof -top of the merged one", ["go", "tool", "pprof", "-top", str(folder / "all.pb.gz")])
    timed(f"fleet top, {count} not read before", tachograph)
    timed("fleet top, from the index", tachograph)


def beside_hta(folder: Path, hta: Path | None) -> None:
    """The late rank of a job."""
    traces, ranks = folder / "traces", folder / "ranks"
    traces.mkdir()
    ranks.mkdir()
    for rank in range(RANKS):
        trace = gzip.compress(json.dumps(trace_of(rank)).encode())
        (traces / f"rank{rank}.json.gz").write_bytes(trace)
    started = []
    for rank in range(RANKS):
        command = [sys.executable, "-m", "tachograph", "record", "--cpu-only", "--quiet", "--start-paused"]
        command += ["--output", f"{rank}.tacho", str(PROGRAM), str(folder / "port"), str(STEPS)]
        variables = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS)}
        started.append(subprocess.Popen(command, cwd=ranks, env=variables, stdout=subprocess.DEVNULL))
    if any(each.wait() for each in started):
        raise click.ClickException("the ranks failed")
    answer = folder / "answer.json"
    command = [sys.executable, "-m", "tachograph", "fleet", "ranks", str(ranks), "--workers", "1"]
    timed("fleet ranks, 8 not read before", [*command, "--json", str(answer)])
    print(f"  late: {json.loads(answer.read_text())['late']}")
    if hta is not None:
        timed("HTA, stragglers of 8 traces", [str(hta), "-c", STRAGGLERS, str(traces), str(answer)])
        print(f"  late: rank {answer.read_text()}")


def trace_of(rank: int) -> dict[str, object]:
    """A trace as PyTorch's profiler writes it: in each step a kernel that computes, and an all-reduce."""
    events: list[dict[str, object]] = []
    step_us, all_us, late_us = 200_000, 150_000, 120_000
    for step in range(STEPS):
        begin = step * step_us
        ends = 10_000 + (late_us if rank == LATE else 0)
        annotation = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1}
        events.append({**annotation, "ts": begin, "dur": step_us - 1000, "args": {}})
        for number, (name, start, end) in enumerate(
            (("gemm", begin + 100, begin + ends), ("ncclKernel_AllReduce", begin + ends, begin + all_us))
        ):
            correlation = 2 * step + number + 1
            launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
            events.append({**launch, "ts": begin + 10 + number, "dur": 1, "args": {"correlation": correlation}})
            kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": end - start}
            events.append({**kernel, "args": {"stream": 7, "device": 0, "correlation": correlation}})
    return {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": RANKS}, "traceEvents": events}


def timed(name: str, command: list[str]) -> None:
    """Runs a command and prints what it took."""
    with tempfile.TemporaryDirectory() as folder:
        done = process.run(command, dict(os.environ), Path(folder), Path(folder) / "errors", 3600.0)
    if done.status != 0:
        raise click.ClickException(f"{name}: {done.stderr[-800:]}")
    print(f"{name:<34}{done.elapsed_s:>8.2f} s{done.cpu_s:>8.2f} s CPU{done.peak_rss_bytes / 1e6:>7.0f} MB", flush=True)


if __name__ == "__main__":
    main()

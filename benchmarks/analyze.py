"""What analyzing costs: synthetic recordings of 10^5 to 10^8 CPU samples, each analyzed in a process of its own.

    python benchmarks/analyze.py                          # up to 10^7 samples, a minute
    python benchmarks/analyze.py --samples 1e8            # the bar: 10 s and 2 GB on two cores (1 GB of disk)
    python benchmarks/analyze.py --samples 1e7 --stacks 100000 --files 2000 --task html --task diff   # 10 s and 1 GB

Time is that of the whole command, from start to exit; memory is its largest resident set. Samples have native call
paths unless `--no-paths` is given. Recordings are written through the format's own writer, a piece at a time, and
removed when they were measured unless `--keep` names a folder.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from tachograph.format import Manifest, Specification, TableWriter, load_specification, write_table

PIECE = 1 << 20
INTERVAL_NS = 10_000_000
START_NS = 1_000_000_000_000
UUID = "00000000-0000-4000-8000-000000000000"
CORES = 2
COMMAND = "from tachograph.cli import main; main(prog_name='tachograph')"
TASKS = {
    "json": ["analyze", "{base}", "--json", os.devnull],
    "html": ["analyze", "{base}", "--html", "{made}.html", "--figures", "{made}"],
    "diff": ["diff", "{base}", "{new}", "--html", "{made}.html", "--figures", "{made}"],
    **{
        name: ["export", name, "{base}", "--output", "{made}"]
        for name in ("speedscope", "pprof", "firefox", "perfetto")
    },
}


@dataclass(frozen=True)
class Shape:
    """How large the program is that the samples are of."""

    stacks: int = 20_000
    threads: int = 4
    files: int = 200
    frames: int = 2_000
    depth: int = 40
    paths: bool = True
    """Whether samples have native call paths, as they do unless the recorder is told otherwise."""


@dataclass(frozen=True)
class Result:
    """One analysis."""

    task: str
    samples: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    recording_bytes: int


@click.command()
@click.option("--samples", default="1e5,1e6,1e7", show_default=True, help="Numbers of samples, comma-separated.")
@click.option("--stacks", default=Shape.stacks, show_default=True, help="Nodes of the calling context tree.")
@click.option("--threads", default=Shape.threads, show_default=True)
@click.option("--files", default=Shape.files, show_default=True, help="Source files of the program.")
@click.option("--paths/--no-paths", default=Shape.paths, show_default=True, help="With native call paths.")
@click.option("--task", "tasks", multiple=True, type=click.Choice(list(TASKS)), default=("json",), show_default=True)
@click.option("--repeat", default=3, show_default=True, help="Analyses of each recording; the median is shown.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Leave the recordings in this folder.")
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures to this JSON file.")
def main(
    samples: str,
    stacks: int,
    threads: int,
    files: int,
    paths: bool,
    tasks: tuple[str, ...],
    repeat: int,
    keep: Path | None,
    results: Path | None,
) -> None:
    """Measure what analyzing costs."""
    shape = Shape(stacks=stacks, threads=threads, files=files, paths=paths)
    figures = []
    click.echo(
        f"{'task':>10} {'samples':>12} {'recording':>11} {'time':>9} {'CPU':>9} {'ns/sample':>10} {'peak memory':>12}"
    )
    for count in (int(float(text)) for text in samples.split(",")):
        with folder(keep) as parent:
            recordings = [parent / f"synthetic-{count}.tacho"]
            if "diff" in tasks:
                recordings.append(parent / f"synthetic-{count}-again.tacho")
            for run, recording in enumerate(recordings):
                if not recording.exists():
                    make_recording(recording, count, shape, run)
            for task in tasks:
                runs = sorted((measure(task, recordings, count) for _ in range(repeat)), key=lambda each: each.seconds)
                median = runs[len(runs) // 2]
                figures.append(median)
                click.echo(
                    f"{task:>10} {count:>12,} {median.recording_bytes / 1e6:>8.1f} MB {median.seconds:>7.2f} s"
                    f" {median.cpu_seconds:>7.2f} s"
                    f" {median.seconds / count * 1e9:>10.0f} {median.peak_bytes / 1e6:>9.0f} MB"
                )
    if results is not None:
        results.write_text(json.dumps([vars(result) for result in figures], indent=1) + "\n", "utf-8")


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    """Where a recording is made: a temporary folder, or one that stays."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="tachograph-bench-") as name:
        yield Path(name)


def measure(task: str, recordings: list[Path], count: int) -> Result:
    """Do a task in a child on two cores."""
    limit = f"import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{CORES}]); "
    with tempfile.TemporaryDirectory(prefix="tachograph-bench-") as made:
        named = {"base": str(recordings[0].resolve()), "new": str(recordings[-1].resolve()), "made": f"{made}/made"}
        arguments = [word.format(**named) for word in TASKS[task]]
        started = time.perf_counter()
        child = subprocess.Popen([sys.executable, "-c", limit + COMMAND, *arguments], stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise click.ClickException(f"{' '.join(arguments)} ended with status {child.returncode}")
    size = sum(file.stat().st_size for file in recordings[0].iterdir())
    return Result(task, count, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, size)


def make_recording(path: Path, count: int, shape: Shape, run: int = 0) -> None:
    """Write a recording of `count` samples of a program that has the given shape, the same one in every `run` of it."""
    spec = load_specification()
    path.mkdir(mode=0o700)
    tables = {
        name: write_table(table, path / f"{name}.parquet", spec, name, UUID) for name, table in definitions(spec, shape)
    }
    with TableWriter(path / "cpu.parquet", spec, "cpu", UUID) as writer:
        for piece in cpu_pieces(spec, count, shape, run):
            writer.write(piece)
    tables["cpu"] = {"rows": writer.rows, "bytes": writer.bytes}
    parameters = {"interval_ns": INTERVAL_NS, "sampler": "native", "waits": True}
    end = START_NS + (count // shape.threads + 1) * INTERVAL_NS
    Manifest(
        uuid=UUID,
        state="complete",
        argv=["synthetic.py"],
        clock={"monotonic_ns": START_NS, "utc_ns": 1_700_000_000_000_000_000},
        parameters=parameters,
        tables=tables,
        ended_ns=end,
    ).write(path / "manifest.json")


def definitions(spec: Specification, shape: Shape) -> Iterator[tuple[str, pa.Table]]:
    """The tables of definitions, and a short `waits`."""
    random = np.random.default_rng(1)
    codes = shape.files * 20
    stack = np.arange(shape.stacks)
    # A random tree with branches of about the given depth: each node hangs below one of its near predecessors.
    parent = stack - 1 - random.integers(0, max(1, shape.stacks // shape.depth), shape.stacks)
    sources = "\n".join(f"    total += {line}  # a line of a synthetic program" for line in range(400))
    columns: dict[str, dict[str, object]] = {
        "processes": {
            "process": [0],
            "pid": [1],
            "start_ns": [START_NS],
            "python_version": ["3.13.0"],
            "sampler": ["native"],
        },
        "threads": {
            "thread": range(shape.threads),
            "process": [0] * shape.threads,
            "tid": range(1, shape.threads + 1),
            "name": [f"worker-{number}" for number in range(shape.threads)],
            "main": [number == 0 for number in range(shape.threads)],
        },
        "files": {
            "file": range(shape.files),
            "path": [f"/srv/project/package{number % 9}/module{number}.py" for number in range(shape.files)],
            "source": [sources] * shape.files,
        },
        "codes": {
            "code": range(codes),
            "file": [number % shape.files for number in range(codes)],
            "qualname": [f"function_{number}" for number in range(codes)],
            "first_line": [1 + number // shape.files * 20 for number in range(codes)],
            "flags": [3] * codes,
            # Twenty lines of eight instructions each: code 13 (no columns), 8 code units, one line on.
            "line_table": [bytes([0xEF, 0x02]) * 20] * codes,
        },
        "stacks": {
            "stack": stack,
            "parent": [None if above < 0 else int(above) for above in parent],
            "code": random.integers(0, codes, shape.stacks),
            "instruction": random.integers(0, 160, shape.stacks) * 2,
        },
        "modules": {
            "module": [0, 1],
            "process": [0, 0],
            "path": ["/usr/bin/python3.13", "/usr/lib/libnumeric.so"],
            "start": [0x400000, 0x7F0000000000],
            "end": [0x900000, 0x7F0000900000],
            "file_offset": [0, 0],
            "time_ns": [START_NS, START_NS],
            "interpreter": [True, False],
        },
        "native_frames": {
            "native_frame": range(shape.frames),
            "module": [number % 3 // 2 for number in range(shape.frames)],
            "offset": range(0, shape.frames * 16, 16),
            "symbol": [
                "_PyEval_EvalFrameDefault" if number % 3 == 0 else f"symbol_{number}" for number in range(shape.frames)
            ],
        },
        "native_stacks": native_stacks(shape),
        "waits": {
            "start_ns": [START_NS],
            "end_ns": [START_NS + 10**9],
            "off_cpu_ns": [10**9],
            "thread": [0],
            "stack": [0],
            "target": [0],
            "stack_state": [0],
        },
    }
    for name, values in columns.items():
        if not values:
            continue
        schema = spec.tables[name].schema
        rows = len(next(iter(values.values())))  # type: ignore[arg-type]
        arrays = [
            pa.array(values[field.name], field.type) if field.name in values else pa.nulls(rows, field.type)
            for field in schema
        ]
        yield name, pa.table(arrays, schema=schema)


CALLS = 3


def native_stacks(shape: Shape) -> dict[str, object]:
    """Of each node of the calling context tree, the evaluation loop that runs it and two functions that it calls."""
    if not shape.paths:
        return {}
    row = np.arange(CALLS * shape.stacks)
    outermost = row % CALLS == 0
    return {
        "native_stack": row,
        "parent": [None if root else number - number % CALLS for number, root in enumerate(outermost.tolist())],
        "native_frame": np.where(outermost, 0, row % shape.frames),
        "stack": [number // CALLS if root else None for number, root in enumerate(outermost.tolist())],
    }


def cpu_pieces(spec: Specification, count: int, shape: Shape, run: int) -> Iterator[pa.Table]:
    """The samples, sorted by time: few stacks are hot and most are rare, as in real programs."""
    random = np.random.default_rng(2 + run)
    order = random.permutation(shape.stacks)
    opcodes = random.integers(1, 256, shape.stacks)
    for start in range(0, count, PIECE):
        rows = min(PIECE, count - start)
        stack = order[np.minimum(random.zipf(1.3, rows), shape.stacks) - 1]
        weight = np.maximum(random.normal(INTERVAL_NS, INTERVAL_NS / 20, rows), 1).astype(np.int64)
        tick = START_NS + (start + np.arange(rows)) * (INTERVAL_NS // shape.threads)
        called = random.integers(0, 5, rows)
        values = {
            "time_ns": tick + random.integers(0, 1000, rows),
            "thread": (start + np.arange(rows)) % shape.threads,
            "stack": stack,
            "native_frame": (stack * 7 + called) % shape.frames,
            "cpu_ns": weight,
            "system_ns": np.where(random.random(rows) < 0.03, weight // 2, 0),
            "overruns": np.zeros(rows, np.int64),
            "gil": random.random(rows) < 0.8,
            "opcode": opcodes[stack],
            "origin": np.zeros(rows, np.int64),
            "stack_state": np.zeros(rows, np.int64),
        }
        if shape.paths:
            values |= {"native_stack": stack * CALLS + called % CALLS, "native_path": np.ones(rows, np.int64)}
        schema = spec.tables["cpu"].schema
        arrays = [
            pa.array(values[field.name], field.type, safe=False) if field.name in values else pa.nulls(rows, field.type)
            for field in schema
        ]
        yield pa.table(arrays, schema=schema)


if __name__ == "__main__":
    main()

"""What a fleet costs: indexing 100 to 10,000 recordings, and questions on the index.

    python benchmarks/fleet.py                                # 100 and 1,000 recordings: a few minutes
    python benchmarks/fleet.py --sizes 10000 --workers 2 --repeat 40   # a quarter of an hour; 7 GB, then removed
    python benchmarks/fleet.py --sizes 1000 --workers 2 --replicate 10000   # questions on 10,000, without the reading

The recordings are made from a real one, which is recorded first: each has other samples (a part of them is left out by
chance), another host, day and version; a function becomes slower with a version. Tables that are the same are links.
With ``--repeat 40`` a recording has 40 times as many samples and waits, and about 0.7 MB. With ``--replicate 10000``
the questions are asked as well of an index of so many recordings whose sums are those of others. Each step runs in a
process of its own, whose times and memory are told; Dask's workers run already, and their CPU time is counted with
the command's.
"""

import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness import process

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "backup.py"
VERSIONS = ("1.1", "1.2", "1.3")
HOSTS = 200
TABLES = ("cpu", "waits", "allocations")
"""Tables of which each recording has other rows."""

FUNCTION = "cut_points"
QUESTIONS = {
    "top": ["top", "{url}"],
    "top --lines": ["top", "{url}", "--lines"],
    "top --stacks": ["top", "{url}", "--stacks"],
    "top --by version": ["top", "{url}", "--by", "version"],
    "compare": ["compare", "{url}", "version=1.1", "version=1.3"],
    "flame": ["flame", "{url}"],
    "when": ["when", "{url}", "{function}"],
    "find": ["find", "{url}", "{function}"],
    "spans": ["spans", "{url}"],
    "html": ["html", "{url}", "{url}.html"],
    "memory": ["memory", "{url}"],
    "health": ["health", "{url}"],
}


@dataclass(frozen=True)
class Step:
    """One command over a fleet of so many recordings: seconds, seconds of CPU time, bytes of its largest process."""

    recordings: int
    workers: int
    name: str
    seconds: float
    cpu_s: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Recordings in a second."""
        return self.recordings / self.seconds

    @property
    def is_index(self) -> bool:
        """Whether it is the one that reads recordings."""
        return self.name.startswith("index")


@click.command()
@click.option("--sizes", default="100,1000", show_default=True, help="How many recordings, divided by commas.")
@click.option("--workers", default="1,2", show_default=True, help="How many processes read them.")
@click.option("--dask", default="", help="How many workers of a cluster of Dask read them, one after the other.")
@click.option("--repeat", default=1, show_default=True, help="How often a recording has its samples and waits.")
@click.option("--replicate", default=0, help="Ask so many recordings as well, with the sums of the last size.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("results/fleet"), show_default=True)
def main(sizes: str, workers: str, dask: str, repeat: int, replicate: int, output: Path) -> None:
    """See the module."""
    output.mkdir(parents=True, exist_ok=True)
    steps: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="tachograph-fleet-") as folder:
        original = record(Path(folder))
        counts = [int(size) for size in sizes.split(",")]
        for size in counts:
            fleet = Path(folder) / f"fleet-{size}"
            make(original, fleet, size, repeat)
            each = sum(path.stat().st_size for path in (fleet / "day-00" / "run-000000.tacho").iterdir())
            print(f"{size:,} recordings of about {each / 1e3:,.0f} KB", flush=True)
            for count in map(int, filter(None, dask.split(","))):
                shutil.rmtree(fleet / ".tachograph", ignore_errors=True)
                steps.append(measure_cluster(fleet, size, count))
                print(told(steps[-1]), flush=True)
            for count in map(int, filter(None, workers.split(","))):
                shutil.rmtree(fleet / ".tachograph", ignore_errors=True)
                steps.append(measure(fleet, size, count, "index", ["health", "{url}"]))
                print(told(steps[-1]), flush=True)
            steps += ask(fleet, size)
            if replicate and size == counts[-1]:
                more = replicated(fleet, Path(folder) / "replicated", replicate)
                steps += ask(more, replicate)
                shutil.rmtree(more)
            shutil.rmtree(fleet)
    print("\n" + "\n".join(table(steps)))
    (output / "fleet.json").write_text(json.dumps([asdict(step) for step in steps], indent=1), encoding="utf-8")


def record(folder: Path) -> Path:
    """A real recording, with memory."""
    path = folder / "full.tacho"
    command = [sys.executable, "-m", "tachograph", "record", "--quiet", "--output", str(path), str(EXAMPLE)]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return path


def make(original: Path, fleet: Path, count: int, repeat: int = 1) -> None:
    """Writes ``count`` recordings, on all processors."""
    tables = {name: pq.read_table(path) for name in TABLES if (path := original / f"{name}.parquet").exists()}
    with ProcessPoolExecutor(mp_context=get_context("forkserver")) as pool:
        work = partial(_make_one, original, tables, fleet, count, repeat)
        for _ in pool.map(work, range(count), chunksize=10):
            pass


def _make_one(original: Path, tables: dict[str, pa.Table], fleet: Path, count: int, repeat: int, number: int) -> None:
    chance = np.random.default_rng((20_261_123, number))
    target = fleet / f"day-{number % 30:02}" / f"run-{number:06}.tacho"
    target.mkdir(parents=True)
    manifest = json.loads((original / "manifest.json").read_text(encoding="utf-8"))
    version = VERSIONS[number * len(VERSIONS) // count]
    for path in original.glob("*.parquet"):
        table = tables.get(path.stem)
        if table is None:
            os.link(path, target / path.name)
            continue
        slower = 1.5 if version == VERSIONS[-1] and path.stem == "cpu" else 1.0
        times = 1 if path.stem == "allocations" else repeat  # blocks are told apart by their numbers
        kept = pa.concat_tables([later(varied(table, chance, slower), turn, times) for turn in range(times)])
        pq.write_table(kept, target / path.name, compression="zstd")
        manifest["tables"][path.stem] = {"rows": kept.num_rows, "bytes": (target / path.name).stat().st_size}
    manifest |= {
        "uuid": str(uuid.UUID(bytes=chance.bytes(16))),
        "host": f"web-{number % HOSTS}",
        "created_utc": f"2026-11-{1 + number * 28 // count:02}T{number % 24:02}:00:00+00:00",
        "labels": {"version": version, "service.name": f"shop-{number % 3}"},
    }
    (target / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def varied(table: pa.Table, chance: np.random.Generator, slower: float) -> pa.Table:
    """The table with a part of its rows; with ``slower``, the stacks with even numbers have so much more time."""
    if table.schema.get_field_index("size") < 0:  # blocks are told apart by their row
        table = table.filter(pa.array(chance.random(table.num_rows) < chance.uniform(0.7, 1.0)))
    if slower != 1.0:
        at = table.schema.get_field_index("cpu_ns")
        stack = table.column("stack").fill_null(1).to_numpy()
        times = table.column("cpu_ns").to_numpy()
        times = np.where(stack % 2 == 0, times * slower, times).astype(np.int64)
        table = table.set_column(at, table.schema.field(at), pa.array(times, table.schema.field(at).type))
    return table


def later(table: pa.Table, turn: int, turns: int) -> pa.Table:
    """The ``turn``-th of so many parts of a run: its times lie one after the other within the time of the original."""
    names = [name for name in ("time_ns", "start_ns", "end_ns", "off_cpu_ns") if name in table.column_names]
    first = last = 0
    for name in names if turns > 1 else ():
        at = table.schema.get_field_index(name)
        times = table.column(at).to_numpy()
        if name == "off_cpu_ns":
            moved = times // turns
        else:
            first, last = first or int(times.min()), last or int(times.max())
            moved = first + (times - first + turn * (last - first)) // turns
        table = table.set_column(at, table.schema.field(at), pa.array(moved, pa.int64()))
    return table


def ask(fleet: Path, size: int) -> list[Step]:
    """All questions, one after the other."""
    steps = []
    for name, arguments in QUESTIONS.items():
        steps.append(measure(fleet, size, 1, name, arguments))
        print(told(steps[-1]), flush=True)
    return steps


def replicated(fleet: Path, target: Path, count: int) -> Path:
    """``count`` recordings with an index whose sums are those of ``fleet``, in turn; none is read. Files are links."""
    from tachograph.analyzer.fleet import open as open_fleet
    from tachograph.analyzer.fleet import recording_sums
    from tachograph.analyzer.fleet.index_tables import SCHEMAS

    originals = sorted(path for path in fleet.glob("*/*.tacho"))
    for number in range(count):
        original = originals[number % len(originals)]
        copy = target / original.parent.name / f"{original.stem}-{number // len(originals):03}.tacho"
        copy.mkdir(parents=True)
        for path in original.iterdir():
            os.link(path, copy / path.name)
    found = open_fleet(str(fleet))
    path_of = dict(zip(found.recordings["recording"], found.recordings["path"], strict=True))
    parts: dict[str, dict[str, pa.Table]] = defaultdict(dict)
    for name in SCHEMAS:
        rows = found.select().index.dataset(name).to_table()
        for key, of_it in rows.to_pandas().groupby("recording").indices.items():
            parts[path_of[key]][name] = rows.take(pa.array(of_it))

    def read_sums(url: str, options: object, each: Any, question: object) -> dict[str, pa.Table]:
        sums = parts[f"{each.path[:-10]}.tacho"]
        made = {}
        for name, schema in SCHEMAS.items():
            table = sums.get(name, schema.empty_table())
            new: dict[str, object] = {"recording": each.key}
            if name == "recordings":
                new |= {"path": each.path, "fingerprint": each.fingerprint, "uuid": str(each.key)}
            for column, value in new.items():
                at = schema.get_field_index(column)
                table = table.set_column(at, schema.field(at), pa.array([value] * len(table), schema.field(at).type))
            made[name] = table
        return made

    with mock.patch.object(recording_sums, "read_sums", read_sums):
        open_fleet(str(target))
    return target


def measure_cluster(fleet: Path, size: int, workers: int) -> Step:
    """Indexes with the workers of a cluster, processes that have loaded what they need."""
    distributed: Any = importlib.import_module("distributed")  # it has no types
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(importlib.import_module, "tachograph.analyzer.fleet.recording_sums")
        before = client.run(time.process_time)
        step = measure(fleet, size, 1, "index, Dask", ["health", "{url}", "--cluster", cluster.scheduler_address])
        spent = sum(client.run(time.process_time).values()) - sum(before.values())
        peaks = client.run(lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    peak = max(step.peak_bytes, *peaks.values())
    return replace(step, workers=workers, cpu_s=step.cpu_s + spent, peak_bytes=peak)


def measure(fleet: Path, size: int, workers: int, name: str, arguments: list[str]) -> Step:
    """Runs a question as a command of its own."""
    typed = [each.format(url=fleet, function=FUNCTION) for each in arguments]
    command = [sys.executable, "-m", "tachograph", "fleet", *typed, "--workers", str(workers), "--json", "-"]
    done = process.run(command, dict(os.environ), fleet.parent, fleet.parent / "errors", 7200.0)
    if done.status != 0:
        raise click.ClickException(f"{name}: {done.stderr[-500:]}")
    return Step(size, workers, name, done.elapsed_s, done.cpu_s, done.peak_rss_bytes)


def told(step: Step) -> str:
    """A line for people."""
    line = f"{step.recordings:>7,} recordings  {step.workers} workers  {step.name:<18}{step.seconds:>9.2f} s"
    line += f"{step.cpu_s:>9.2f} s CPU{step.peak_bytes / 1e6:>8.0f} MB"
    each = 1e3 * step.cpu_s / step.recordings
    return f"{line}{step.rate:>9.1f} a second, {each:.0f} ms CPU each" if step.is_index else line


def table(steps: list[Step]) -> list[str]:
    """The steps as a table of Markdown, a row for each and a column for each number of recordings."""
    rows: dict[str, dict[int, Step]] = defaultdict(dict)
    for step in steps:
        workers = f", {step.workers} worker{'s' if step.workers > 1 else ''}" if step.is_index else ""
        rows[step.name + workers][step.recordings] = step
    sizes = sorted({step.recordings for step in steps})
    lines = ["| step | " + " | ".join(f"{size:,} recordings" for size in sizes) + " |"]
    lines.append("| --- |" + " --- |" * len(sizes))
    for name, found in rows.items():
        cells = [_cell(found[size]) if size in found else "" for size in sizes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _cell(step: Step) -> str:
    each = f", {1e3 * step.cpu_s / step.recordings:.0f} ms CPU and {step.rate:.0f} a second" if step.is_index else ""
    return f"{step.seconds:.1f} s{each}, {step.peak_bytes / 1e6:.0f} MB"


if __name__ == "__main__":
    main()

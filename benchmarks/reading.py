"""What reading costs: recordings of one program by several profilers, and the commands that make a report of them.

    python benchmarks/reading.py                       # one, four and sixteen seconds: about five minutes
    python benchmarks/reading.py --peers memray

The program is raytrace of the ten. Each reader is timed as a whole command; memory is its largest resident set. What
the readers of other profilers read is theirs: sizes differ by what is recorded, so they stand beside the times.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from harness import process, programs
from harness.arms import FULL, Arm, arms
from harness.errors import BenchmarkError
from harness.interleave import progress
from harness.measure import size_of
from harness.peers import chosen, installed, load
from harness.sample import record_program
from harness.store import ENDED, NEVER_ENDED
from harness.survey import ENVIRONMENTS, ROOT, complaints

PROGRAM = "raytrace"
SECONDS = (1.0, 4.0, 16.0)


@dataclass(frozen=True)
class Reader:
    """A way to make a report: the arm that records, and the command that reads (see `harness.arms` for its words).

    `{recording}` is what was recorded, `{report}` what is to be written.
    """

    name: str
    arm: Arm
    command: str


@dataclass(frozen=True)
class Reading:
    """One report. Times in seconds; None where the recording or the report failed, which `outcome` tells."""

    reader: str
    seconds: float
    recording_bytes: int | None
    whole_s: float | None
    cpu_s: float | None
    peak_bytes: int | None
    outcome: str


@click.command()
@click.option(
    "--peers",
    default="memray,austin,profiling-sampling",
    show_default=True,
    help="Comma-separated; those that have readers.",
)
@click.option("--seconds", "lengths", default=",".join(f"{s:g}" for s in SECONDS), show_default=True)
@click.option(
    "--timeout", type=float, default=120.0, show_default=True, help="Seconds after which a report is given up."
)
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), help="Default: results/reading.json.")
def main(peers: str, lengths: str, timeout: float, results: Path | None) -> None:
    """Time and memory of reports."""
    with complaints("reading"):
        site = programs.installed()
        readers = _readers(peers)
        steps = [(float(length), reader) for length in lengths.split(",") for reader in readers]
        found = []
        with progress(len(steps)) as show:
            for done, (seconds, reader) in enumerate(steps):
                show(done, f"{reader.name}, {seconds:g} s")
                found.append(read(reader, seconds, site, timeout))
    print(table(found))
    target = results or ROOT / "results" / "reading.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")


def _readers(peers: str) -> list[Reader]:
    full = next(arm for arm in arms([]) if arm.name == FULL)
    found = [
        Reader("tachograph analyze", full, "{tachograph} analyze {recording}"),
        Reader("tachograph analyze --html", full, "{tachograph} analyze --html {report} {recording}"),
    ]
    having = ",".join(name for name in chosen(peers) if load(name).readers)
    for peer, python in installed(having, ENVIRONMENTS):
        for arm, commands in peer.readers.items():
            found += [Reader(title, peer.arm(arm, python), command) for title, command in commands.items()]
    return found


def read(reader: Reader, seconds: float, site: Path, timeout_s: float) -> Reading:
    """Records and makes the report. What does not work is a result, of a peer."""
    try:
        return _read(reader, seconds, site, timeout_s)
    except (BenchmarkError, FileNotFoundError) as error:
        if not reader.arm.peer:
            raise
        return Reading(reader.name, seconds, None, None, None, None, f"failed: {error}")


def _read(reader: Reader, seconds: float, site: Path, timeout_s: float) -> Reading:
    with record_program(reader.arm, PROGRAM, site, seconds) as recording:
        template = reader.command.replace("{report}", str(recording.parent / "report"))
        command = Arm(reader.name, template + " {arguments}", reader.arm.python).command([], recording)
        finished = process.run(command, dict(os.environ), recording.parent, recording.parent / "errors", timeout_s)
        size = size_of(recording)
    outcome = ENDED if finished.status == 0 else f"status {finished.status}: {finished.stderr[-80:]}"
    if finished.timed_out:
        outcome = NEVER_ENDED
    good = finished.status == 0 and not finished.timed_out
    return Reading(
        reader=reader.name,
        seconds=seconds,
        recording_bytes=size,
        whole_s=finished.elapsed_s if good else None,
        cpu_s=finished.cpu_s if good else None,
        peak_bytes=finished.peak_rss_bytes if good else None,
        outcome=outcome,
    )


def table(readings: list[Reading]) -> str:
    """The table for people."""
    lines = [f"{'':<30}{'run':>7}{'recording':>14}{'report in':>12}{'CPU time':>12}{'memory':>12}"]
    for one in readings:
        head = f"{one.reader:<30}{one.seconds:>5.0f} s"
        if one.whole_s is None or one.cpu_s is None or one.peak_bytes is None or one.recording_bytes is None:
            lines.append(f"{head}  {one.outcome}")
            continue
        lines.append(
            f"{head}{one.recording_bytes / 1024:>10.1f} KiB{one.whole_s:>10.2f} s{one.cpu_s:>10.2f} s"
            f"{one.peak_bytes / 1e6:>9.0f} MB"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Long recordings: the program comes to its end, nothing is lost, and nothing grows.

Watched are the recording command, the program, what --rotate leaves on disk, and the processes that write its tables.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from integration import restrictions, support
from soak.loads import LOADS, Load
from tachograph.format import schema

MOST_GROWTH = 16 << 20
"""Bytes that each may have more after the first quarter than at its end: buffers find their size, no more.

Each window's tables are made by a process of its own: of those the ones that ended in the first quarter are compared
with the later ones, each at its largest. One that is still about to load its libraries says nothing.
"""

MOST_AT_THE_END, MOST_PER_ROW = 256 << 20, 600
"""Bytes that the recording command may have at its largest, with those of files, when it makes the tables: so many, and
so many for each row of the tables that are made in memory, such as threads and stacks."""

KEEP = 3
"""Windows that are kept under ``--rotate``."""

MOST_TORN = 0.01
"""Of all samples: those whose stack changed while it was read."""

DISK = "12m"
"""The size of the disk that is full half of the time."""


@dataclass(frozen=True)
class Growth:
    """Resident bytes of a process, or bytes on disk: at the end of the first quarter, and the most after it."""

    quarter: int
    most: int

    @property
    def bytes(self) -> int:
        return self.most - self.quarter


def resident(pid: int) -> int:
    """Bytes of a process that are in memory and not in a file; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def peak(pid: int) -> int:
    """The most bytes that a process had in memory so far, those of files as well; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def watch_tables(pid: int, seconds: float, peaks: dict[int, tuple[float, int]]) -> tuple[list[int], list[int]]:
    """Look at the recording command for so many seconds: its program's process, and that of tables, as seen last.

    In ``peaks`` is, for each process of tables, when it was last seen and the largest size it had: it is over within
    seconds, and largest in its last moments.
    """
    end = time.monotonic() + seconds
    while True:
        program, tables = support.children(pid)
        for each in tables:
            peaks[each] = (time.monotonic(), max(peak(each), peaks.get(each, (0.0, 0))[1]))
        if time.monotonic() >= end:
            return program, tables
        time.sleep(0.02)


def watch_end(command: subprocess.Popen[str], seconds: float) -> int:
    """Wait for the end of a recording command, for so many seconds; the most bytes that it had in memory at any time.

    It makes the tables when its program has ended.
    """
    most, end = 0, time.monotonic() + seconds
    while command.poll() is None and time.monotonic() < end:
        most = max(most, peak(command.pid))
        time.sleep(0.02)
    return most


def on_disk(folder: Path) -> int:
    """Bytes that all recordings in a folder take, those of the moment's spool too."""
    total = 0
    for recording in folder.glob("*.tacho"):
        for place, _, names in os.walk(recording):  # which may be gone, or have another name by now
            for name in names:
                with suppress(FileNotFoundError):
                    total += os.stat(os.path.join(place, name)).st_blocks * 512
    return total


def run(folder: Path, name: str, seconds: float) -> str:
    """Record a load for so long; a verdict in words. Raises AssertionError where something is lost, or grows."""
    load = LOADS[name]
    program = folder / f"{name}.py"
    program.write_text(load.source, encoding="utf-8")
    if name == "disk":
        return run_in_small_disk(folder, program, load, seconds)
    if name == "pressure":
        return run_in_control_group(folder, program, load, seconds)
    rotate = ["--rotate", f"{max(2, round(seconds / 60))}s", "--keep", str(KEEP)] if name == "rotation" else []
    seen, at_end = watch(folder, program, [*load.options, *rotate], seconds)
    if load.changes_size:
        del seen["program"]
    growth = {}
    if load.tables:
        growth["program"] = grown_in_teeth("program", seen.pop("program"), load.tables)
    growth |= {what: grown(what, found, seconds) for what, found in seen.items() if found and what != "tables"}
    if seen["tables"]:
        growth["tables"] = grown_tables(seen["tables"], seconds)
    recording = max(folder.glob("*.tacho"))
    lost = judge(recording, load)
    sizes = ", ".join(f"{what} {each.quarter >> 20} then at most {each.most >> 20} MB" for what, each in growth.items())
    return f"{sizes}, {judge_end(recording, at_end)}; {lost}"


def watch(
    folder: Path, program: Path, options: Sequence[str], seconds: float
) -> tuple[dict[str, list[tuple[float, int]]], int]:
    """Sizes with the times when they were seen: of processes, and if it rotates, of what is on disk.

    Of those that make tables there is one for each that came to its end, when it did so. Then the most bytes that the
    recording command had in memory, up to its end.
    """
    seen: dict[str, list[tuple[float, int]]] = {"recorder": [], "program": [], "disk": []}
    peaks: dict[int, tuple[float, int]] = {}
    running: list[int] = []
    begin = time.monotonic()
    with support.start([program, str(seconds)], folder, *options) as command:
        while command.poll() is None and time.monotonic() - begin < seconds:
            programs, running = watch_tables(command.pid, min(1.0, seconds / 50), peaks)
            if time.monotonic() - begin >= seconds:
                break  # the program is over, and the recorder makes the tables: that is what ``most`` is for
            sizes = {
                "recorder": resident(command.pid),
                "program": max(map(resident, programs), default=0),
                "disk": on_disk(folder) if "--rotate" in options else 0,
            }
            for name, size in sizes.items():
                if size > 0:
                    seen[name].append((time.monotonic() - begin, size))
        most = watch_end(command, 600)
        output, errors = command.communicate(timeout=1)
    assert (command.returncode, output, errors) == (0, "done\n", ""), (command.returncode, output, errors)
    seen["tables"] = sorted((at - begin, size) for pid, (at, size) in peaks.items() if pid not in running)
    return seen, most


def grown(name: str, found: Sequence[tuple[float, int]], seconds: float) -> Growth:
    """What was seen of one size. Raises AssertionError if it is more than buffers need to find their size."""
    held = lasting(found)
    early = [size for at, size in held if seconds / 8 <= at <= seconds / 4]
    late = [size for at, size in held if at > seconds / 4]
    return bounded(name, early, late, held)


def lasting(found: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """At each look, the least of this and the next two: whether a look falls on what is held for a moment is chance.

    Four segments are put together, for example, in some 20 MB and less than a second. What a process had at most, at
    any moment, is judged at its end (``judge_end``).
    """
    return [(at, min(size for _, size in found[index : index + 3])) for index, (at, _) in enumerate(found)]


def grown_in_teeth(name: str, found: Sequence[tuple[float, int]], tables: int) -> Growth:
    """The same of a process with tables that fill up and are emptied: its peaks are compared, the first with the later.

    None may be larger than the process was at first, by more than full tables and what buffers need. Where the tables
    were not emptied within the run, that alone is asked.
    """
    first, *later = peaks([size for _, size in found])
    most = Growth(found[0][1] + tables, max([first, *later]))
    some = found[:: max(1, len(found) // 20)]
    assert most.bytes <= MOST_GROWTH, f"the {name} grew by {most.bytes >> 10} KB more than full tables take: {some}"
    return bounded(name, [first], later, found) if later else Growth(first, first)


def peaks(sizes: Sequence[int]) -> list[int]:
    """The largest sizes, each before a fall by more than half of what buffers may take; at last the largest since."""
    found, top = [], sizes[0]
    for size in sizes:
        if size < top - MOST_GROWTH // 2:
            found.append(top)
            top = size
        top = max(top, size)
    return [*found, top]


def grown_tables(found: Sequence[tuple[float, int]], seconds: float) -> Growth:
    """The same of the processes that make tables, each seen once, at its end; the first is early in any case."""
    early = [size for number, (at, size) in enumerate(found) if number == 0 or at <= seconds / 4]
    late = [size for _, size in found[len(early) :]]
    return bounded("process of tables", early, late, found)


def bounded(name: str, early: Sequence[int], late: Sequence[int], found: Sequence[tuple[float, int]]) -> Growth:
    """From the first quarter to the rest of a run, if that is at most ``MOST_GROWTH``; AssertionError if it is more."""
    assert early, f"the {name} was not seen early"
    assert late, f"the {name} was not seen late"
    growth = Growth(max(early), max(late))
    some = sorted({*found[:: max(1, len(found) // 20)], max(found, key=lambda each: each[1])})
    assert growth.bytes <= MOST_GROWTH, f"the {name} grew by {growth.bytes >> 10} KB: {some}"
    return growth


def judge_end(recording: Path, most: int) -> str:
    """What the recording command had in memory at most. AssertionError if that is too much for the tables it made."""
    spec = schema.load_specification()
    tables = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["tables"]
    rows = sum(table["rows"] for name, table in tables.items() if not spec.tables[name].sort)
    bar = MOST_AT_THE_END + MOST_PER_ROW * rows
    assert most <= bar, f"the recording command had {most >> 20} MB, and {rows} rows allow it {bar >> 20} MB"
    return f"at its end {most >> 20} of {bar >> 20} MB"


def judge(recording: Path, load: Load) -> str:
    """What the recording says that it lost. Raises AssertionError where that is more than a few torn stacks."""
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete", f"the recording is unfinished: {manifest['notes']}"
    samples = manifest["tables"]["cpu"]["rows"]
    losses = {loss.name: loss.severity for loss in schema.load_specification().losses}
    lost: dict[str, int] = {}
    for entry in manifest["quality"]:
        if losses[entry["loss"]] == "loss":
            lost[entry["loss"]] = lost.get(entry["loss"], 0) + (entry["count"] or 0)
    torn = sum(lost.pop(name, 0) for name in ("stacks_torn", "waits_torn"))
    assert samples > 0, "nothing was recorded"
    assert torn <= MOST_TORN * samples + 1, f"{torn} of {samples} stacks are torn"
    assert lost.keys() <= load.may_lose, f"lost: {lost}"
    words = ", ".join(f"{count} {name}" for name, count in sorted(lost.items())) or "nothing lost"
    return f"{samples} samples, {torn} stacks torn, {words}"


def record_command(program: Path, load: Load, seconds: float) -> list[str]:
    """What records a load into ``run.tacho`` of the working folder."""
    return [*support.COMMAND, "record", "-qo", "run.tacho", *load.options, str(program), str(seconds)]


def run_in_small_disk(folder: Path, program: Path, load: Load, seconds: float) -> str:
    """The same on a file system that the program fills and empties again, in a mount name space."""
    unshare = shutil.which("unshare")
    assert unshare, "no unshare to make a small file system with"
    (folder / "small").mkdir()
    mount = f"mount -t tmpfs -o size={DISK} tachograph-soak small && cd small"
    # The recording is finished when the disk has room, and is kept elsewhere.
    script = f'{mount} && "$@"; status=$?; rm -f fill; cp -r run.tacho ..; exit $status'
    command = [unshare, "-rm", "sh", "-c", script, "sh", *record_command(program, load, seconds)]
    return finished(folder, command, load, seconds)


def run_in_control_group(folder: Path, program: Path, load: Load, seconds: float) -> str:
    """The same in a control group with a limit of memory, which the kernel must make room in all the time."""
    command = [sys.executable, str(restrictions.RESTRICTED), "memory-group", *record_command(program, load, seconds)]
    return finished(folder, command, load, seconds)


def finished(folder: Path, command: Sequence[str], load: Load, seconds: float) -> str:
    """A verdict in words of a command that was run to its end, and left ``run.tacho``."""
    done = support.run(command, folder, timeout=seconds + 600)
    assert (done.status, done.stdout) == (0, "done\n"), done
    report = support.tachograph("analyze", "run.tacho", cwd=folder)
    assert report.returncode == 0, report.stderr
    return judge(folder / "run.tacho", load)

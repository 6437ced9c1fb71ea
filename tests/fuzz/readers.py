"""Every way in which tachograph reads a recording, run in this process, and what each may do: exit with 0 or with 2."""

import io
import random
import shutil
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.mutation import MARK
from tachograph.analyzer.recording.question_options import ExportFormat

FORMATS = tuple(map(str, ExportFormat))


def commands(recording: Path, good: Path, out: Path, chance: random.Random) -> list[list[str]]:
    """Command lines that read ``recording``: a few of those that there are."""
    path = str(recording)
    pair = chance.sample([path, str(good)], 2)
    metric = chance.choice(("cpu", "wait", "allocated", "live", "resident", "end", "copied"))
    every = [
        ["analyze", path],
        ["analyze", path, "--memory"],
        ["analyze", path, "--json", "-"],
        ["analyze", path, "--html", str(out / "report.html")],
        ["info", path],
        ["info", path, "--json", "-"],
        ["export", chance.choice(FORMATS), path, "-o", str(out / "exported"), "--metric", metric],
        ["diff", *pair, "--anyway", "--html", str(out / "diff.html")],
        ["diff", *pair, "--anyway"],
        ["scrub", path, "-o", str(out / "scrubbed.tacho"), "--drop", "sources"],
        ["recover", path],
    ]
    chosen = chance.sample(every[:-1], 2)
    return [*chosen, every[-1]] if recording.is_dir() and chance.random() < 0.6 else chosen


def fault(command: list[str], out: Path, canary: str) -> str | None:
    """Run one command; what it did that it must not, or None."""
    from tachograph.cli import main

    printed, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    status: object = None
    with redirect_stdout(printed), redirect_stderr(errors):
        try:
            main.main(command, "tachograph")
        except SystemExit as end:
            status = end.code
        except BaseException:  # noqa: BLE001  # whatever it is, it is what we look for
            return "raised: " + traceback.format_exc(limit=-14)
    printed.flush()
    text = printed.buffer.getvalue().decode("utf-8", "replace")
    lines = [line for line in errors.getvalue().splitlines() if line.strip()]
    if status not in (0, 2):
        return f"exit status {status!r}: {errors.getvalue()[-500:]}"
    if status == 2 and len(lines) != 1:
        return f"{len(lines)} lines for a refusal: {errors.getvalue()[-500:]}"
    if "\x1b" in text or "\x1b" in errors.getvalue():
        return "an escape sequence reaches the terminal"
    if canary in text + errors.getvalue():
        return "a file outside was read"
    if command[0] == "recover" and canary in _sources(Path(command[1])):
        return "a file outside is in the recording"
    return _fault_of_files(out, canary)


def _fault_of_files(out: Path, canary: str) -> str | None:
    """What is wrong with the files that a command wrote, or None."""
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if canary.encode() in content:
            return f"a file outside is in {path.name}"
        if path.suffix == ".html" and MARK.encode() in content:
            return f"HTML was injected into {path.name}"
    return None


def _sources(recording: Path) -> str:
    """All source texts in a recording, as far as they can be read."""
    try:
        table = pq.read_table(recording / "files.parquet", columns=["source"])
    except (pa.ArrowException, OSError, ValueError):
        return ""
    return "".join(filter(None, table.column("source").to_pylist()))


def clear(*places: Path) -> None:
    """Remove what a case left."""
    for place in places:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, onerror=lambda function, path, info: None)
        else:
            place.unlink(missing_ok=True)
    sys.stdout.flush()

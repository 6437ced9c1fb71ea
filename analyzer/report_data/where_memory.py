"""Where the memory is, in words and rows: the parts of what is resident, and judgements with what helps."""

from __future__ import annotations

import math
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..profile.profile import Profile
from ..recording.frame import Row
from ..recording.text import printable
from .numbers import percent, seconds, size

if TYPE_CHECKING:
    from ..conclusions.memory.where import Division, Verdict

LEAST = 1e6
"""Parts with fewer bytes are left out of the paragraph."""

OTHER = "stacks, variables of libraries, the recorder, and what is not explained"

_KEPT_HELP = {
    "malloc": "ctypes.CDLL(None).malloc_trim(0) gives free pages back; MALLOC_ARENA_MAX=2 keeps fewer heaps of threads",
    "pymalloc": "an arena is given back when its last object is: keep objects that live long apart from temporary ones",
}
_LIBRARY_HELP = "ask the library to give free pages back (pyarrow: default_memory_pool().release_unused())"


def where_sentence(profile: Profile) -> str | None:
    """The paragraph: what is resident, and what it consists of; None where that is not known."""
    where = None if profile.memory is None else profile.memory.where
    if where is None:
        return None
    whole = where.whole
    several = len(where.processes) > 1
    of = " in all processes" if several else ""
    parts = [f"{size(round(each))} {label}" for each, label in _parts(whole) if each >= LEAST]
    unknown = "" if whole.live_bytes is not None else ", the rest in blocks or kept by allocators (not known)"
    text = f"{size(round(whole.resident_bytes))} resident at {seconds(where.time_s)}{of}: {', '.join(parts)}{unknown}"
    if several:
        text += f"; {size(round(whole.proportional_bytes))} if shared pages count once"
    if (later := whole.later_at_most_bytes or 0.0) >= LEAST:
        text += (
            f"; at most {size(round(later))} more after that, before a signal ended {'a' if several else 'the'} process"
        )
    return text


def _parts(division: Division) -> list[tuple[float, str]]:
    """Each part with its label; those that are not known are left out."""
    kept = [(each.bytes, f"free but kept by {each.allocator}") for each in division.kept_by if each.bytes is not None]
    live = [] if division.live_bytes is None else [(division.live_bytes, "in live blocks")]
    return [
        *live,
        *kept,
        (division.file_bytes, "pages of files"),
        (division.shared_bytes, "shared memory"),
        (division.other_bytes, "other"),
    ]


def where_rows(profile: Profile) -> list[Row] | None:
    """The parts of the whole, each with its judgement; None where they are not known."""
    where = None if profile.memory is None else profile.memory.where
    if where is None:
        return None
    whole = where.whole
    judged = {each.allocator: each for each in where.verdicts if each.verdict == "kept"}

    def row(size_: float | None, part: str, note: str | None = None) -> Row:
        known = size_ is not None and whole.resident_bytes > 0
        share = size_ / whole.resident_bytes if size_ is not None and known else math.nan
        return {"bytes": math.nan if size_ is None else size_, "share": share, "part": part, "note": note}

    rows = [row(whole.live_bytes, "live blocks and mappings", "see the lines")]
    for kept in whole.kept_by:
        verdict = judged.get(kept.allocator)
        rows.append(
            row(kept.bytes, f"free, kept by {kept.allocator}", None if verdict is None else verdict_help(verdict))
        )
    rows += [
        row(whole.file_bytes, "pages of files", "code, and files that are mapped; the kernel can take them back"),
        row(whole.shared_bytes, "shared memory"),
        row(whole.other_bytes, "other", OTHER),
    ]
    return [each for each in rows if each["bytes"] != 0]


LEAK_REMEDY = "find what still refers to it: a cache without a limit, a list that only grows, a forgotten callback"


def verdict_text(verdict: Verdict) -> str:
    """A judgement as a sentence without its full stop."""
    amount = size(round(verdict.bytes))
    where = verdict.function or ""
    if verdict.file is not None:
        where = f"{PurePosixPath(verdict.file).name}:{verdict.line}"
    return {
        "leak": f"leak: {amount} allocated on {where} and never given back",
        "cache": f"cache: {amount} held by what is kept to be used again, on {where}",
        "kept": f"kept: {amount} free, and not given back by {verdict.allocator}",
        "fragmented": f"fragmented: {amount} of pages pinned by {size(round(verdict.pinned_by_bytes or 0))} of live"
        f" objects in {verdict.allocator}" + (f", most of them of {where}" if where else ""),
        "copied-after-fork": f"copied after fork: {amount} of pages that forked processes shared with their parent",
    }[verdict.verdict]


def verdict_help(verdict: Verdict) -> str:
    """A remedy for what a judgement is about."""
    if verdict.verdict == "kept":
        return _KEPT_HELP.get(verdict.allocator or "", _LIBRARY_HELP)
    return {
        "leak": LEAK_REMEDY,
        "cache": "a limit (maxsize=), as many entries as are used again",
        "fragmented": "allocate what lives long before or apart from what is temporary",
        "copied-after-fork": "gc.freeze() before the fork, and no writing to what the parent has loaded: reading an"
        " object writes its reference count",
    }[verdict.verdict]


def judgement_rows(profile: Profile) -> list[tuple[str, str]]:
    """Each judgement with its remedy."""
    where = None if profile.memory is None else profile.memory.where
    return (
        [] if where is None else [(printable(verdict_text(each), 300), verdict_help(each)) for each in where.verdicts]
    )


def process_where_rows(profile: Profile) -> list[Row]:
    """The parts of each process at its last reading, the largest first."""
    where = None if profile.memory is None else profile.memory.where
    if where is None:
        return []
    processes = {row["process"]: row for row in profile.frames.processes.rows()}
    rows = []
    for process, time_s, division in where.processes:
        about = processes.get(process, {})
        rows.append(
            {
                "process": process,
                "pid": about.get("pid"),
                "name": about.get("name"),
                "time_s": time_s,
                "resident_bytes": division.resident_bytes,
                "live_bytes": division.live_bytes,
                "kept_bytes": division.kept_bytes,
                "file_bytes": division.file_bytes,
                "shared_bytes": division.shared_bytes,
                "other_bytes": division.other_bytes,
                "private_bytes": division.private_bytes,
                "copied_after_fork_bytes": division.copied_after_fork_bytes,
            }
        )
    return sorted(rows, key=lambda row: -row["resident_bytes"])


def share_text(part: float, whole: float) -> str:
    """A part as a share in percent."""
    return f"{percent(part / whole) or '0'} %" if whole > 0 else "?"


_NO_CHAIN = {
    "unreached": "native code, or garbage: nothing leads there from modules and running functions",
    "unfinished": "not found: the search ended before its end",
}


def referrer_rows(profile: Profile) -> list[Row] | None:
    """Chains that keep the blocks of the largest sites alive; None where that was not asked for, or there is none."""
    referrers = None if profile.memory is None else profile.memory.referrers
    if referrers is None or not len(referrers):
        return None
    lines = profile.frames.lines
    held = {(line["file"], line["line"]): line.get("live_at_end_bytes") for line in lines.rows()}
    return [
        {
            **row,
            "held": held.get((row["file"], row["line"])),
            "place": row["function"] if row["file"] is None else f"{PurePosixPath(row['file']).name}:{row['line']}",
            "kept_by": printable(str(row["holder"] or _NO_CHAIN.get(row["role"], "")), 300),
            "object": None if row["type"] is None else printable(row["type"], 80),
        }
        for row in referrers.rows()
    ]

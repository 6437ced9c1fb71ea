"""The golden recordings tell wrong readers from right ones: each mutant of two plain readers fails on the one named.

The readers are those that were written from the documents alone (``support.plain_reader`` for complete recordings,
``support.plain_recoverer`` for spools). A mutant has one line changed, as a misreading of the text would have it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support import plain_reader, plain_recoverer
from tachograph.analyzer.recording.opened import Recording
from tachograph.format.spool import process_log

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"
SPOOLS: tuple[str, ...] = ("killed", "memory-killed", "native", "pools", "touched", "calls", "redundancy")
SPOOLS += ("pending", "definitions", "modules", "window-killed", "rich")
FOR_THE_RECORDING_MACHINE = {"line_table", "sha256", "size", "source", "exit_status"}
"""Columns that a recovery elsewhere leaves open, or may write in several ways."""

Mutant = tuple[str, str, str]
"""The vector that fails, a piece of the source, and what stands there in its place."""

READERS: dict[str, Mutant] = {
    "a null opcode is unknown": (
        "attribution",
        "TRUNCATED) and bool(classes)",
        'TRUNCATED) and bool(classes) and row["opcode"] is not None',
    ),
    "the opcode of a torn stack counts": ("attribution", 'row["stack_state"] in (WHOLE, TRUNCATED) and ', ""),
    "the opcode of a truncated stack does not": ("attribution", "in (WHOLE, TRUNCATED) and", "in (WHOLE,) and"),
    "CACHE is in no class": ("attribution", 'classes | {0: "internal"}', "classes"),
    "no sample is served": ("attribution", 'return outside and each["stack"] == row["stack"]', "return False"),
    "a guessed path serves": ("attribution", "TRUSTED_PATHS = (1, 3, 4)", "TRUSTED_PATHS = (1, 2, 3, 4)"),
    "a torn path does not": ("attribution", "TRUSTED_PATHS = (1, 3, 4)", "TRUSTED_PATHS = (1, 3)"),
    "the activation itself serves": ("attribution", "return outside and each", "return each"),
    "collecting is ignored": ("attribution", 'collecting = row.get("collecting")', "collecting = None"),
    "collecting that is unknown is false": (
        "attribution",
        "gc = named_gc and collecting is not False",
        "gc = named_gc and collecting",
    ),
    "the garbage collector has no names": ("attribution", "and _GC.match(symbol)", "and False"),
    "the call machinery has no names": ("attribution", "and _CALL.match(symbol)", "and False"),
    "the C library has no name": (
        "attribution",
        'if _C_LIBRARY.match(PurePosixPath(module["path"]).name):',
        "if False:",
    ),
    "all that begins with libc is the C library": (
        "attribution",
        '_C_LIBRARY.match(PurePosixPath(module["path"]).name)',
        'PurePosixPath(module["path"]).name.startswith("libc")',
    ),
    "the recorder's modules are outside": ("attribution", 'if _RECORDER.match(module["path"]):', "if False:"),
    "its hooks are the interpreter": (
        "attribution",
        '"LIBC" if _HOOKED.match(frame["symbol"] or "") else "INTERP"',
        '"INTERP"',
    ),
    "the JIT is ignored": (
        "attribution",
        '"JIT" if module["path"] == "[anonymous]" and jit else',
        '"JIT" if False else',
    ),
    "what is in no module is the interpreter's": (
        "attribution",
        'module is None:\n            return "OUTSIDE"',
        'module is None:\n            return "INTERP"',
    ),
    "a stack of none is as good as unknown": ("attribution", ' and row["stack_state"] != NO_STACK, ', ", "),
    "the kernel's part is not taken off": (
        "attribution",
        "parts[whose] += weight - (system or 0)",
        "parts[whose] += weight",
    ),
    "every window has first samples": ("window", "begun = not later or", "begun = True or"),
    "no first sample has a weight of its own": ("weights", "if reweighted and begun", "if False and begun"),
    "a first sample stands for one interval": ("window", 'interval * (row["overruns"] + 1)', "interval"),
    "its kernel's part is not scaled": ("window", 'min(system * weight / max(row["cpu_ns"], 1), weight)', "system"),
    "a signal counts for each thread": ("signal", 'weight /= ticks[thread["process"], row["time_ns"]]', "pass"),
    "what is freed is held": ("memory", 'row["followed"] and row["freed_ns"] is None', 'row["followed"]'),
    "what is not followed is held": (
        "memory",
        'row["followed"] and row["freed_ns"] is None',
        'row["freed_ns"] is None',
    ),
    "no location, no line": (
        "lines",
        "        if entry[0] >> 3 & 15 != NOWHERE:\n            located = _valid(line)",
        "        located = None if entry[0] >> 3 & 15 == NOWHERE else _valid(line)",
    ),
    "a frame that has not begun has no line": ("lines", "return _valid(first_line)", "return None"),
    "a root without instruction is on the first line": (
        "lines",
        'is not None or node["parent"] is None',
        "is not None",
    ),
    "a line that cannot be is one": ("lines", "return line if 1 <= line < 1 << 31 else None", "return line"),
    "varints are unsigned": ("lines", "return -(value >> 1) if value & 1 else value >> 1", "return value"),
    "the most significant bits of a varint come first": (
        "lines",
        "value |= (byte & 63) << shift",
        "value = value << 6 | byte & 63",
    ),
    "a broken entry has a line": ("lines", "return max(0, form - 10) if whole else None", "return max(0, form - 10)"),
    "the first window is a later one": (
        "lines",
        'window.get("number", 0) > window.get("first", 0)',
        'window.get("number", 0) > 0',
    ),
    "the kernel's part may be more than the weight": (
        "lines",
        'else min(system * weight / max(row["cpu_ns"], 1), weight)',
        'else system * weight / max(row["cpu_ns"], 1)',
    ),
    "signals of two processes at one time are one": (
        "lines",
        'ticks[threads[row["thread"]]["process"], row["time_ns"]] += 1',
        'for process in range(2):\n                ticks[process, row["time_ns"]] += 1',
    ),
    "each row is rounded": ("lines", "weight /= ticks[", "weight //= ticks["),
    "sums are cut": ("lines", "{name: round(amount) for", "{name: int(amount) for"),
    "a sample of the signal sampler is no first one": (
        "lines",
        '            seen.add(row["thread"])',
        '            seen |= {row["thread"]} if row["origin"] == TIMER else set()',
    ),
    "a varint has five bytes at most": ("lines", "[\\x40-\\x7f]{0,5}", "[\\x40-\\x7f]{0,4}"),
    "a varint has any number of bytes": ("lines", "[\\x40-\\x7f]{0,5}", "[\\x40-\\x7f]*"),
    "a varint ends after four bytes": ("lines", "        shift += 6", "        shift = min(shift + 6, 18)"),
    "form 14 has a varint less": ("lines", "{13: 1, 14: 4, NOWHERE: 0}", "{13: 1, 14: 3, NOWHERE: 0}"),
    "an activation of any stack serves": (
        "attribution",
        'return outside and each["stack"] == row["stack"]',
        "return outside",
    ),
    "any activation of the path serves": (
        "attribution",
        'if each["stack"] is not None:',
        'if each["stack"] is not None and each["stack"] == row["stack"]:',
    ),
    "a frame that was lost is outside": (
        "attribution",
        'outside = outside or (each["native_frame"] is not None and self._where(each["native_frame"]) == "OUTSIDE")',
        'outside = outside or each["native_frame"] is None or self._where(each["native_frame"]) == "OUTSIDE"',
    ),
    "a path without an activation serves": (
        "attribution",
        'node = each["parent"]\n        return False',
        'node = each["parent"]\n        return outside',
    ),
    "the interpreter of another process is one": (
        "attribution",
        'for each in self.tables["modules"] if each["process"] == module["process"])',
        'for each in self.tables["modules"])',
    ),
    "anonymous memory is the JIT's": (
        "attribution",
        '"JIT" if module["path"] == "[anonymous]" and jit else',
        '"JIT" if module["path"] == "[anonymous]" else',
    ),
    "an instruction at an entry's end is in it": ("lines", "if instruction < covered:", "if instruction <= covered:"),
}
"""For complete recordings."""

RECOVERERS: dict[str, Mutant] = {
    "pending blocks are ignored": ("pending", "            self._read_pending(data)\n", ""),
    "pending blocks have one length": (
        "pending",
        'for size in (block["size"], block["least"]):',
        'for size in (block["least"],):',
    ),
    "pending blocks have the new length": (
        "pending",
        'for size in (block["size"], block["least"]):',
        'for size in (block["size"],):',
    ),
    "those of a process that has ended count": (
        "pending",
        'if self.control and self.control["state"] != ENDED:',
        "if self.control:",
    ),
    "the last release counts": ("pending", 'key=lambda row: -row["time_ns"]', 'key=lambda row: row["time_ns"]'),
    "spans are ignored": ("definitions", 'elif name == "span":', 'elif name == "no span":'),
    "spans end before they begin": ("definitions", 'if found["end_ns"] < found["start_ns"]:', "if False:"),
    "a parent comes later": ("definitions", "parent if parent < row else None", "parent if parent != row else None"),
    "the last definition counts": (
        "definitions",
        "self.defined[of].setdefault(found[of], found)",
        "self.defined[of][found[of]] = found",
    ),
    "of a thread the first record counts": (
        "definitions",
        "about[kind][thread] = event",
        "about[kind].setdefault(thread, event)",
    ),
    "the system's name replaces Python's": ("definitions", "and not of_python", ""),
    "records that contradict themselves are not counted": (
        "definitions",
        '        if found is None:\n            self.losses["records_torn"] += 1',
        "        if found is None:\n            pass",
    ),
    "characters have any width": (
        "definitions",
        "if found[encoding] not in WIDTHS:\n                return None",
        "if found[encoding] not in WIDTHS:\n                found[encoding] = 1",
    ),
    "records of a later version are torn": (
        "definitions",
        "            elif record[0] in KINDS:\n",
        '            elif record[0] not in KINDS:\n                self.losses["torn"] += 1\n            else:\n',
    ),
    "what a bool byte does not list is false": (
        "definitions",
        "{0: False, 1: True}",
        "{at: at == 1 for at in range(256)}",
    ),
    "what a tri-state byte does not list is false": (
        "definitions",
        "{1: True, 2: False} if",
        "{at: at == 1 for at in range(256)} if",
    ),
    "no row is damaged": (
        "definitions",
        "if any(row.get(column, bound) < bound",
        "if False and any(row.get(column, bound) < bound",
    ),
    "the last exiting counts": ("definitions", "exiting[0] if exiting", "exiting[-1] if exiting"),
    "a circle of callers is no loss": ("definitions", 'process.losses["references_lost"] += node in path', "pass"),
    "no end is uncopied": ("definitions", 'self.losses["ends_uncopied"] += 1', "pass"),
    "unread bytes at the end are torn": (
        "definitions",
        "end = len(data) // 8 * 8",
        "end = (len(data) + 7) // 8 * 8\n    data = data.ljust(end, b'\\1')",
    ),
    "the earliest module has an address for ever": (
        "modules",
        'max(seen, key=lambda each: each["time_ns"]) if seen else',
        "None if False else",
    ),
    "the latest module always had it": ("modules", 'if time_ns is not None and each["time_ns"] <= time_ns', "if True"),
    "a module has the address at its end": ("modules", '<= address < each["end"]', '<= address <= each["end"]'),
    "an address has no module before the first": (
        "modules",
        "if not holders:",
        'if not [each for each in holders if time_ns is None or each["time_ns"] <= time_ns]:',
    ),
    "the file's offset is left out": ("modules", '+ module["file_offset"]', ""),
    "native paths have no time": (
        "modules",
        'self.holder(process, nodes[node]["pc"], time)',
        'self.holder(process, nodes[node]["pc"], None)',
    ),
    "native paths have the last time": (
        "modules",
        "times[node] = min(time, times.get(node, time))",
        "times[node] = max(time, times.get(node, time))",
    ),
    "carried parts are parts": (
        "window-killed",
        "if carried is not None:\n            found",
        "if False:\n            found",
    ),
    "carried parts are ignored": (
        "window-killed",
        '        for path in (spool / "parts").glob(f"{prefix}.*"):\n',
        '        for path in (spool / "parts").glob(f"{prefix}.??????-??????"):\n',
    ),
    "losses of earlier windows count": (
        "window-killed",
        "max(0, min(count, MOST) - min(before, MOST))",
        "min(count, MOST)",
    ),
    "no loss lasts": (
        "window-killed",
        'if self.carried is None or loss.get("lasting") else',
        "if self.carried is None else",
    ),
    "a process began before its window": ("window-killed", "max(process.start_ns, begin)", "process.start_ns"),
    "threads that ended before are there": (
        "window-killed",
        'if thread not in ends or ends[thread]["time_ns"] >= begin',
        "if True",
    ),
    "CPU time of earlier windows counts": ("window-killed", "max(0, used - earlier)", "used"),
    "stacks that are numbered anew are others": (
        "window-killed",
        "if key not in self._contexts:\n                    self._contexts[key] = self._node",
        "if True:\n                    self._contexts[key] = self._node",
    ),
    "a part stands for its last segment only": ("killed", "for seq in range(first, last + 1)", "for seq in (last,)"),
    "the number of a segment is not in its check": ("killed", " ^ seq * 0x3D4D", ""),
    "the carried part of the window before counts": (
        "window-killed",
        "key=lambda part: (part[2], part[1]), default",
        "key=lambda part: (-part[2], part[1]), default",
    ),
    "referrers are ignored": ("rich", 'elif name == "referrer":', 'elif name == "no referrer":'),
    "of one link the last counts": (
        "rich",
        'self.defined["referrer"].setdefault(found["chain"] << 16 | found["link"], found)',
        'self.defined["referrer"][found["chain"] << 16 | found["link"]] = found',
    ),
    "chains have one link": ("rich", 'found["chain"] << 16 | found["link"]', 'found["chain"]'),
    "referrers name no stacks": ("rich", 'named |= {link["stack"] for link in', "named |= {NONE for link in"),
    "empty texts of a link are texts": ("rich", "{key: link[key] or None for", "{key: link[key] for"),
    "unrecorded bytes are ignored": ("rich", "        self._add_unrecorded()\n", ""),
    "unrecorded bytes may be negative": ("rich", "max(0, amount) for amount", "amount for amount"),
    "unrecorded bytes are of the last row alone": (
        "rich",
        'rows += [*self.defined["span"].values(), *self.defined["referrer"].values()]',
        "pass",
    ),
    "what ended has no unrecorded bytes": ("pending", 'or (ended and not self.losses["records_dropped"])', "or ended"),
    "an unknown footprint is 0": ("pending", 'if held != unknown["footprint_bytes"]:', "if True:"),
    "a wait counts at its beginning": (
        "pending",
        'row["end_ns"] if "end_ns" in row else row["time_ns"]',
        'row["start_ns"] if "end_ns" in row else row["time_ns"]',
    ),
    "the footprint is that of the control file": (
        "rich",
        "held = max(0, held + sum(flows[::2]) - sum(flows[1::2]))",
        "pass",
    ),
    "unknown fields of unrecorded bytes are 0": (
        "rich",
        'row = {**unknown, "time_ns"',
        'row = {**dict.fromkeys(unknown, 0), "time_ns"',
    ),
    "waits.parquet may be missing": ("rich", 'name in ("cpu", "wait") and not', 'name in ("cpu",) and not'),
    "torn records of a part are not counted": (
        "rich",
        'self.losses["records_torn"] += header["torn"]',
        "0 * header['torn']",
    ),
    "a segment's own number says nothing": ("rich", 'if header["sequence"] != seq:', "if False:"),
    "a segment beyond the current one is not read": (
        "rich",
        "if seq not in held and self._read",
        'if seq not in held and seq <= self.control["current_segment"] and self._read',
    ),
    "copies that are not whole do not count": ("rich", 'and self.control["copied_ns"]', "and False"),
    "the control file has no end": ("rich", 'control.get("end_ns", 0) if', "0 if"),
    "a start routine of 0 is an address": ("rich", '.get("start") or None', '.get("start")'),
    "a creator without a row has an unknown one": (
        "rich",
        'thread["creator"] = maps["thread"].get(thread["creator"])',
        'thread["creator"] = thread["creator"]',
    ),
    "of META the first counts": (
        "rich",
        'meta = {event["key"]: event["value"] for name, event in process.events if',
        'meta = {event["key"]: event["value"] for name, event in reversed(process.events) if',
    ),
    "what is not UTF-8 is replaced": (
        "rich",
        'data.decode("utf-8", "backslashreplace")',
        'data.decode("utf-8", "replace")',
    ),
    "native paths name no Python stacks": (
        "rich",
        'nodes[node]["stack"] for node in path if node in nodes and nodes[node]["stack"] != NONE',
        "NONE for node in path if False",
    ),
    "rows of a part are ignored": ("rich", "self._row(name, whole | dict", "bool(whole | dict"),
    "an unknown hash is one": (
        "rich",
        'elif value == field.get("unknown"):',
        'elif value == field.get("unknown") and "hash" not in column:',
    ),
    "a release belongs to the births before it": (
        "rich",
        'end = freed.get(row["block"])',
        'end = freed.get(row["block"]) if row["time_ns"] > freed.get(row["block"], row)["time_ns"] else None',
    ),
    "a lost node has the root's caller": ("native", 'named |= {nodes[node]["stack"]', 'named -= {nodes[node]["stack"]'),
}
"""For spools."""


LOGS: dict[str, tuple[str, str]] = {
    "FIRST is a row beside that of START": (
        "if record is first and not any(_is_first(other, record) for other in log.records):",
        "if record is first:",
    ),
    "the second FIRST counts": ("if record is first and not any", "if not any"),
    "of several ends the last counts": ("case Event.END if self.end_ns is None:", "case Event.END:"),
    "a later end says nothing": ("case Event.END if self.exit_status is None:", "case Event.END if False:"),
    "an end after REAPED counts": (
        "case Event.END if self.end_ns is None:",
        "case Event.END if self.end_ns is None or self.reaped:",
    ),
    "one CPU time of two is enough": ("if record.first >= 0 and record.second >= 0:\n", "if record.first >= 0:\n"),
    "an unknown CPU time of a child is 0": ("if record.first >= 0 and record.second >= 0 else 0", "if True else 0"),
    "skipped bytes in a row are one loss": ("            torn += 1\n", "            torn = 1\n"),
    "a short record that is too long is clipped": ("length if length <= _ROOM else None", "min(length, _ROOM)"),
    "a later REAPED counts": ("case Event.REAPED if not self.reaped:", "case Event.REAPED:"),
    "REAPED is below END": ("        if record.status is not None:\n", "        if self.exit_status is None:\n"),
    "its CPU time is below that of END": (
        "if record.first >= 0 and record.second >= 0:\n            self.user",
        "if self.user_ns is None:\n            self.user",
    ),
    "its resident set is above that of END": ("if self.max_resident_bytes is None and self", "if self"),
    "it ends no process": ("self.end_ns = record.time_ns\n        if", "pass\n        if"),
    "any process may reap": ("and not images.may_reap(", "and images is None and not images.may_reap("),
    "only the parent may reap": ("return parent is not None and parent.end_ns is not None", "return False"),
    "what is little is unlisted": ("used_ns >= LEAST_UNLISTED_NS", "used_ns >= 0"),
    "what is in two logs is there twice": ("records.setdefault((record", "records.setdefault((id(record), record"),
}
"""Pieces of our own reader of process logs, and the wrong code in their place: there is no plain reader of these."""

OF_IMAGES = {"pid", "parent_pid", "end_ns", "exit_status", "user_ns", "system_ns", "max_resident_bytes", "origin"}


def agrees_log(source: str) -> bool:
    """True if this source makes of the logs of ``reaped`` and ``tree-killed`` what it must."""
    mutant = ModuleType("mutant")
    mutant.__package__ = process_log.__package__
    sys.modules["mutant"] = mutant  # dataclasses look their module up
    try:
        exec(compile(source, "mutant", "exec"), vars(mutant))  # noqa: S102
    finally:
        del sys.modules["mutant"]
    spool, wanted = VECTORS / "reaped.tacho" / "spool", answer("reaped")
    logs = [mutant.decode_log((spool / name).read_bytes()) for name in ("processes.kept.log", "processes.log")]
    images = mutant.images_of(mutant.joined(logs))
    found = {"children_unlisted_ms": images.unlisted_ns // 1_000_000, "records_torn": sum(log.torn for log in logs)}
    if len(images.found) != wanted["rows"]["processes"]:
        return False
    if found != {entry["loss"]: entry["count"] for entry in wanted["quality"]}:
        return False
    tree = mutant.decode_log((VECTORS / "tree-killed.tacho" / "spool" / "processes.log").read_bytes())
    if len(mutant.images_of(mutant.joined([tree])).found) != answer("tree-killed")["rows"]["processes"]:
        return False
    pairs = zip(wanted["values"]["processes"], images.found, strict=True)
    return all(getattr(image, key) == pick[key] for pick, image in pairs for key in pick.keys() & OF_IMAGES)


def test_no_wrong_reader_of_process_logs_is_right() -> None:
    assert process_log.__file__ is not None
    source = Path(process_log.__file__).read_text(encoding="utf-8")
    assert agrees_log(source)
    assert {name: source.count(old) for name, (old, _) in LOGS.items()} == dict.fromkeys(LOGS, 1)
    assert [name for name, (old, new) in LOGS.items() if agrees_log(source.replace(old, new))] == []


def answer(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((VECTORS / f"{name}.expected.json").read_text(encoding="utf-8"))
    return document


def mutated(module: ModuleType, old: str, new: str) -> ModuleType:
    """The module with one piece of its source replaced."""
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, "the mutant changes one place"
    mutant = ModuleType("mutant")
    mutant.__file__ = module.__file__
    sys.modules["mutant"] = mutant  # for what looks its own module up
    try:
        exec(compile(source.replace(old, new), "mutant", "exec"), vars(mutant))  # noqa: S102
    finally:
        del sys.modules["mutant"]
    if hasattr(mutant, "_rows"):
        vars(mutant)["_rows"] = rows_of_file  # reading is not what is wrong
    return mutant


@cache
def rows_of_file(path: Path) -> list[dict[str, Any]]:
    return plain_reader._rows(path)


def agrees_complete(reader: Any, name: str) -> bool:
    """True if the reader finds in a complete recording what it must."""
    recording, wanted = reader.PlainRecording(VECTORS / f"{name}.tacho"), answer(name)
    lines = [{"stack": each["stack"], "line": recording.place(each["stack"])[1]} for each in wanted["lines"]]
    return bool(recording.derived() == wanted["derived"] and lines == wanted["lines"])


def agrees_spool(recoverer: Any, name: str, recording: Path | None = None) -> bool:
    """True if the recoverer makes of a spool what it must."""
    recovery, wanted = recoverer.PlainRecovery(recording or VECTORS / f"{name}.tacho"), answer(name)
    if any(len(recovery.tables[table]) != count for table, count in wanted["rows"].items()):
        return False
    for table, picks in wanted["values"].items():
        for pick in picks:
            row = recovery.tables[table][pick["row"]]
            if any(row.get(key) != pick[key] for key in pick.keys() - {"row"} - FOR_THE_RECORDING_MACHINE):
                return False
    return in_order(recovery.quality) == in_order(wanted["quality"])


def in_order(ledger: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((entry["process"], entry["loss"], entry["count"]) for entry in ledger)


@pytest.mark.parametrize("name", SPOOLS)
def test_a_recoverer_written_from_the_text_is_right(name: str) -> None:
    assert agrees_spool(plain_recoverer, name)


@pytest.mark.parametrize("vector", SPOOLS)
def test_files_in_the_archive_are_as_good_as_files(vector: str, tmp_path: Path) -> None:
    """The archive is made, and read by one of the readers, with Python's own module for such archives."""
    recording, original = tmp_path / f"{vector}.tacho", VECTORS / f"{vector}.tacho"
    shutil.copytree(original, recording)
    spool = recording / "spool"
    files = sorted(path for path in spool.glob("*-*.*") if path.suffix in (".ctl", ".seg"))
    with tarfile.open(spool / "ended.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for path in files:
            archive.add(path, path.name)
            path.unlink()
    assert files
    assert agrees_spool(plain_recoverer, vector, recording)
    with Recording.open(recording) as archived, Recording.open(original) as loose:
        for name, table in loose.specification.tables.items():
            assert [*archived.batches(name, table.schema.names)] == [*loose.batches(name, table.schema.names)], name


def survivors(module: ModuleType, mutants: dict[str, Mutant], agrees: Callable[[Any, str], bool]) -> list[str]:
    """The mutants that find what they must all the same."""
    found = []
    for name, (vector, old, new) in mutants.items():
        mutant = mutated(module, old, new)
        try:
            if agrees(mutant, vector):
                found.append(name)
        except (ArithmeticError, LookupError, TypeError, ValueError, AssertionError):
            continue  # it cannot even read it
    return found


def test_no_wrong_reader_is_right() -> None:
    assert survivors(plain_reader, READERS, agrees_complete) == []


def test_no_wrong_recoverer_is_right() -> None:
    assert survivors(plain_recoverer, RECOVERERS, agrees_spool) == []

"""A recoverer of spools, written from SPOOL.md and records.json alone: it imports nothing of tachograph.

DuckDB reads the parts. Slow and easy to check; it makes the tables that the vectors of state ``recording`` tell of, but
for the process log, GPUs and told texts. Each rule is a statement of its own, so that a test can leave one out.
"""

from __future__ import annotations

import json
import re
import struct
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

Row = dict[str, Any]
FORMAT = Path(__file__).parents[2] / "format-spec"
LAYOUTS: dict[str, Any] = json.loads((FORMAT / "records.json").read_text(encoding="utf-8"))
TABLES: dict[str, Any] = json.loads((FORMAT / "tables.json").read_text(encoding="utf-8"))
KINDS = {layout["kind"]: (name, layout) for name, layout in LAYOUTS["records"].items()}
CODES = {"i64": "q", "u64": "Q", "i32": "i", "u32": "I", "u16": "H", "u8": "B", "f64": "d"}
NONE, DEFINITIONS, CONTROL, ENDED = 0xFFFFFFFF, 0xFFFFFFFF, 4096, 2
MOST = (1 << 63) - 1
WIDTHS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


def fields_of(layout: dict[str, Any], data: bytes) -> Row:
    """The fields of a record or a file; those that an earlier version did not write are 0."""
    data = data.ljust(layout["size"], b"\0")
    found: Row = {}
    for field in layout["fields"]:
        count = field.get("count", 1)
        values = struct.unpack_from(f"<{count}{CODES[field['type']]}", data, field["offset"])
        found[field["name"]] = values[0] if count == 1 else values
    return found


def records(data: bytes, seq: int) -> Iterator[tuple[int, bytes] | None]:
    """The records of a segment, and None for each run of bytes that is neither a record nor unused."""
    skipping, at = False, 64
    end = len(data) // 8 * 8
    while at < end:
        (header,) = struct.unpack_from("<Q", data, at)
        length, kind, check = header & 0xFFFFFFFF, header >> 32 & 0xFF, header >> 48
        expected = 0xA5C3 ^ length // 8 ^ kind * 0x1F35 ^ at // 8 * 0x2545 ^ seq * 0x3D4D
        if kind and length >= 8 and length % 8 == 0 and at + length <= end and check == expected & 0xFFFF:
            if skipping:
                yield None
            skipping = False
            yield kind, data[at : at + length]
            at += length
        elif any(data[at:end]):
            skipping, at = True, at + 8
        else:
            break
    if skipping:
        yield None


def decoded(kind: int, data: bytes) -> Row | None:
    """The fields and texts of a record; None if it contradicts itself."""
    layout = KINDS[kind][1]
    if len(data) < layout["least"]:
        return None
    found, at = fields_of(layout, data), layout["size"]
    for text in layout["texts"]:
        length, encoding = found[text["length"]], text["as"]
        if encoding == "bytes" and length == NONE:
            found[text["name"]] = None
            continue
        if encoding in found:
            if found[encoding] not in WIDTHS:
                return None
            length *= found[encoding]
        if at + length > len(data):
            return None
        found[text["name"]] = _text(data[at : at + length], encoding, found)
        at += length
    return found


def _text(data: bytes, encoding: str, found: Row) -> str | bytes:
    if encoding in found:
        text = data.decode(WIDTHS[found[encoding]], "surrogatepass")
        return text.encode("utf-8", "backslashreplace").decode()
    if encoding == "bytes":
        return data
    return data.hex() if encoding == "hex" else data.decode("utf-8", "backslashreplace")


class PlainProcess:
    """What the spool has of one process."""

    def __init__(self, spool: Path, prefix: str, files: dict[str, bytes]) -> None:
        self.pid, self.start_ns = map(int, prefix.split("-"))
        self.losses: dict[str, int] = defaultdict(int)
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.defined: dict[str, dict[int, Row]] = defaultdict(dict)
        self.events: list[tuple[str, Row]] = []
        self.carried: Row | None = None
        self.control: Row | None = None
        data = files.get(f"{prefix}.ctl", b"")
        if data.startswith(b"TACHCTL1"):
            self.control = fields_of(LAYOUTS["files"]["control"], data)
        parts = self._parts(spool, prefix)
        held = {seq for first, last, _ in parts for seq in range(first, last + 1)}
        for _, _, part in parts:
            self._read_part(part)
        for name in sorted(files):
            if re.fullmatch(rf"{prefix}\.\d+\.seg", name):
                seq = int(name.split(".")[1])
                if seq not in held and self._read_segment(files[name], seq):
                    held.add(seq)
        last = self.control["current_segment"] if self.control else max(held, default=-1)
        self.losses["segments_missing"] += sum(seq not in held for seq in range(last + 1))
        if self.control and self.control["state"] != ENDED:
            self._read_pending(data)
            self.losses["blocks_unkept"] += self.control["pending_unkept"]
        self._count()
        self._add_unrecorded()

    def _parts(self, spool: Path, prefix: str) -> list[tuple[int, int, Path]]:
        """First and last segment of each part that counts, and where it lies."""
        found = []
        for path in (spool / "parts").glob(f"{prefix}.*"):
            match = re.fullmatch(r"(\d+)-(\d+)(?:\.(\d+))?", path.name[len(prefix) + 1 :])
            if match:
                found.append((int(match[1]), int(match[2]), int(match[3] or 0), path))
        carried = max((part for part in found if part[2]), key=lambda part: (part[2], part[1]), default=None)
        if carried is not None:
            found = [carried, *(part for part in found if not part[2] and part[1] > carried[1])]
        return [(first, last, path) for first, last, _, path in sorted(found)]

    def _read_part(self, part: Path) -> None:
        definitions = part / "definitions.seg"
        if not definitions.is_file() or not self._read_segment(definitions.read_bytes(), DEFINITIONS):
            self.losses["segments_missing"] += 1
        for name, layout in LAYOUTS["records"].items():
            path = part / f"{layout['rows']}.parquet"
            self.losses["segments_missing"] += name in ("cpu", "wait") and not path.is_file()
            if layout["rows"] and path.is_file():
                found = duckdb.connect().read_parquet(path.as_posix())
                whole = fields_of(layout, b"")  # a part of an earlier version lacks columns
                for row in found.fetchall():
                    self._row(name, whole | dict(zip(found.columns, row, strict=True)))

    def _read_segment(self, data: bytes, seq: int) -> bool:
        if not data.startswith(b"TACHSEG1") or len(data) < 64:
            return False
        header = fields_of(LAYOUTS["files"]["segment"], data)
        if header["sequence"] != seq:
            return False
        self.losses["records_torn"] += header["torn"] if seq == DEFINITIONS else 0
        for record in records(data, seq):
            if record is None:
                self.losses["records_torn"] += 1
            elif record[0] in KINDS:
                self._record(*record)
        return True

    def _read_pending(self, data: bytes) -> None:
        block = LAYOUTS["records"]["block"]
        for size in (block["size"], block["least"]):
            for at in range(CONTROL, len(data) - size + 1, size):
                expected = (0xA5C3 ^ size // 8 ^ block["kind"] * 0x1F35 ^ at // 8 * 0x2545) & 0xFFFF
                if struct.unpack_from("<Q", data, at)[0] == expected << 48 | block["kind"] << 32 | size:
                    self._row("block", fields_of(block, data[at : at + size]))

    def _record(self, kind: int, data: bytes) -> None:
        name, layout = KINDS[kind]
        found = decoded(kind, data)
        if found is None:
            self.losses["records_torn"] += 1
        elif layout["rows"]:
            self._row(name, found)
        elif name == "span":
            if found["end_ns"] < found["start_ns"]:
                self.losses["records_torn"] += 1
            else:
                self.defined["span"].setdefault(found["span"], found)
        elif name == "referrer":
            self.defined["referrer"].setdefault(found["chain"] << 16 | found["link"], found)
        elif name in ("code", "stack", "task_stack", "module", "native_stack"):
            of = name.removeprefix("task_")
            self.defined[of].setdefault(found[of], found)
        elif name == "carried":
            self.carried = found
        else:
            self.events.append((name, found))

    def _row(self, name: str, row: Row) -> None:
        table = LAYOUTS["records"][name]["table"]
        least = {each["name"]: each["least"] for each in TABLES["tables"][table]["columns"] if "least" in each}
        if any(row.get(column, bound) < bound for column, bound in least.items()):
            self.losses["records_torn"] += 1
        else:
            self.rows[name].append(row)

    def _add_unrecorded(self) -> None:
        """The MEMORY record of what was not written when the process was killed, or had no room."""
        control, ended = self.control, bool(self.control and self.control["state"] == ENDED)
        if control is None or (ended and not self.losses["records_dropped"]):
            return
        flows = [max(0, amount) for amount in control["unrecorded_bytes"]]
        rows = [row for name in self.rows for row in self.rows[name]]
        rows += [*self.defined["span"].values(), *self.defined["referrer"].values()]
        times = [row["end_ns"] if "end_ns" in row else row["time_ns"] for row in rows]
        if not times or not any(flows):
            return
        layout = LAYOUTS["records"]["memory"]
        unknown = {field["name"]: field.get("unknown", 0) for field in layout["fields"]}
        names = [name for name in unknown if name.endswith(("_allocated_bytes", "_freed_bytes"))]
        held = control["footprint_bytes"]
        if held != unknown["footprint_bytes"]:
            held = max(0, held + sum(flows[::2]) - sum(flows[1::2]))
        row = {**unknown, "time_ns": max(times), "event": 2, "stack_state": 5, "footprint_bytes": held}
        self.rows["memory"].append(row | dict(zip(names, flows, strict=True)))

    def _count(self) -> None:
        if self.control is None or (self.control["state"] == 1 and self.control["copied_ns"]):
            self.losses["ends_uncopied"] += 1
        if self.control is not None:
            known = dict(enumerate(loss for loss in TABLES["losses"] if loss.get("counter", True)))
            for counter, count in enumerate(self.control["losses"]):
                loss = known.get(counter, {"name": f"cause_{counter}"})
                before = 0 if self.carried is None or loss.get("lasting") else self.carried["losses"][counter]
                self.losses[loss["name"]] += max(0, min(count, MOST) - min(before, MOST))


def _ended(spool: Path) -> dict[str, bytes]:
    """The files of the archive; what is torn at its end is not there."""
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(spool / "ended.tar", "r:") as archive:
            for each in archive:
                data = archive.extractfile(each)
                assert data is not None
                files[each.name] = data.read()
    except (FileNotFoundError, tarfile.ReadError):
        pass
    return files


class PlainRecovery:
    """The tables of a recording of state ``recording``; ``quality`` is its ledger."""

    def __init__(self, recording: Path) -> None:
        spool = recording / "spool"
        files = {path.name: path.read_bytes() for path in spool.glob("*-*.*")} | _ended(spool)
        names = {name.split(".")[0] for name in [*files, *(path.name for path in (spool / "parts").glob("*-*"))]}
        prefixes = sorted(names, key=lambda prefix: tuple(map(int, reversed(prefix.split("-")))))
        self.processes = [PlainProcess(spool, prefix, files) for prefix in prefixes]
        self.tables: dict[str, list[Row]] = {name: [] for name in TABLES["tables"]}
        self._contexts: dict[Any, int] = {}
        self._frames: list[dict[Any, tuple[int, int]]] = []
        self._maps: list[dict[str, dict[Any, int]]] = [defaultdict(dict) for _ in self.processes]
        for number, process in enumerate(self.processes):
            self._process(number, process)
        for number, process in enumerate(self.processes):
            self._threads(number, process)
            self._stacks(number, process)
            self._frames.append(self._addresses(number, process))
        self._number_frames()
        for number, process in enumerate(self.processes):
            self._native_stacks(number, process)
        self._spans()
        for number, process in enumerate(self.processes):
            self._rows(number, process)
            self._referrers(number, process)
        for name, table in TABLES["tables"].items():
            if "sort" in table:
                self.tables[name].sort(key=lambda row: row[table["sort"][0]])
        self.quality = [
            {"process": number, "loss": loss, "count": count}
            for number, process in enumerate(self.processes)
            for loss, count in process.losses.items()
            if count
        ]

    def _process(self, number: int, process: PlainProcess) -> None:
        meta = {event["key"]: event["value"] for name, event in process.events if name == "meta"}
        exiting = [event["time_ns"] for name, event in process.events if name == "state" and event["event"] == 6]
        control = process.control or {}
        begin = process.carried["start_ns"] if process.carried else process.start_ns
        end = control.get("end_ns", 0) if not control.get("stop_requested") else 0
        self.tables["processes"].append(
            {
                "process": number,
                "pid": process.pid,
                "parent_pid": control.get("parent_pid"),
                "start_ns": max(process.start_ns, begin),
                "end_ns": end or None,
                **{key: meta.get(key) for key in ("executable", "implementation", "python_version", "sampler")},
                "exiting_ns": exiting[0] if exiting else None,
            }
        )
        modules = sorted(process.defined["module"].values(), key=lambda each: (each["start"], each["time_ns"]))
        for module in modules:
            module["id"] = len(self.tables["modules"])
            row = {key: module[key] for key in ("path", "start", "end", "file_offset", "time_ns")}
            row |= {"interpreter": bool(module["flags"] & 1), "build_id": module["build_id"] or None}
            self.tables["modules"].append({"module": module["id"], "process": number, **row})

    def _named(self, process: PlainProcess, to: str) -> Iterator[tuple[int, int]]:
        """What rows name of a kind of ids or addresses, with the time of the row."""
        for name, rows in process.rows.items():
            layout = LAYOUTS["records"][name]
            time = "start_ns" if name == "wait" else "time_ns"
            for field in layout["fields"]:
                if field.get("refers") == to:
                    yield from (
                        (row[field["name"]], row[time]) for row in rows if row[field["name"]] != field.get("unknown")
                    )

    def _threads(self, number: int, process: PlainProcess) -> None:
        about: dict[str, dict[int, Row]] = defaultdict(dict)
        for kind, event in process.events:
            thread = event.get("thread", NONE)
            of_python = kind == "thread_name" and about[kind].get(thread, event)["source"] == 1 != event["source"]
            if kind.startswith("thread_") and not of_python:
                about[kind][thread] = event
        starts, ends, names, before, origins = (
            about[f"thread_{each}"] for each in ("start", "end", "name", "carried", "origin")
        )
        begin = process.carried["start_ns"] if process.carried else None
        here = {*starts, *ends, *names, *before, *origins}
        if begin is not None:
            here = {thread for thread in here if thread not in ends or ends[thread]["time_ns"] >= begin}
        here |= {thread for thread, _ in self._named(process, "thread")}
        here |= {span["thread"] for span in process.defined["span"].values()}
        for thread in sorted(here):
            start, end, named = starts.get(thread), ends.get(thread), names.get(thread)
            process.losses["references_lost"] += start is None
            used = end["cpu_ns"] if end else None
            earlier = before[thread]["cpu_ns"] if thread in before else 0
            began = None if start is None else max(start["time_ns"], begin or start["time_ns"])
            if start and end:
                began = min(began, max(end["time_ns"], start["time_ns"]))
            self._maps[number]["thread"][thread] = len(self.tables["threads"])
            self.tables["threads"].append(
                {
                    "thread": len(self.tables["threads"]),
                    "process": number,
                    "tid": start and start["tid"],
                    "name": named and named["name"],
                    "python_name": named and named["source"] == 1,
                    "main": start and bool(start["flags"] & 1),
                    "start_ns": began,
                    "end_ns": end and end["time_ns"],
                    "cpu_ns": None if used is None or used < 0 or earlier < 0 else max(0, used - earlier),
                    "creator": origins.get(thread, {}).get("creator"),
                    "start_frame": origins.get(thread, {}).get("start") or None,
                }
            )

    def _stacks(self, number: int, process: PlainProcess) -> None:
        nodes = process.defined["native_stack"]
        named = {stack for stack, _ in self._named(process, "stack")}
        named |= {link["stack"] for link in process.defined["referrer"].values()} - {NONE}
        for path in (self._path(nodes, node, 0) for node in {node for node, _ in self._named(process, "native_stack")}):
            named |= {nodes[node]["stack"] for node in path if node in nodes and nodes[node]["stack"] != NONE}
        ids = self._maps[number]["stack"]
        for stack in sorted(named):
            for node in self._path(process.defined["stack"], stack, NONE, process, ids):
                record = process.defined["stack"].get(node)
                parent = None if record is None else ids.get(record["parent"])
                if record is None:
                    process.losses["references_lost"] += 1
                    ids[node] = self._node(None, None, None, None)
                    continue
                key = (
                    parent,
                    self._code(number, process, record["code"]),
                    max(record["instruction"], -1),
                    record.get("task"),
                )
                if key not in self._contexts:
                    self._contexts[key] = self._node(parent, key[1], None if key[2] < 0 else key[2], key[3])
                ids[node] = self._contexts[key]

    def _path(
        self, nodes: dict[int, Row], node: int, none: int, process: PlainProcess | None = None, ids: Any = ()
    ) -> list[int]:
        """A node and its callers, those that have an id aside, the outermost first."""
        path: list[int] = []
        while node != none and node not in ids and node not in path:
            path.append(node)
            node = nodes[node]["parent"] if node in nodes else none
        if process is not None:
            process.losses["references_lost"] += node in path
        return path[::-1]

    def _node(self, parent: int | None, code: int | None, instruction: int | None, task: str | None) -> int:
        row = {"parent": parent, "code": code, "instruction": instruction, "task": task}
        self.tables["stacks"].append({"stack": len(self.tables["stacks"]), **row})
        return len(self.tables["stacks"]) - 1

    def _code(self, number: int, process: PlainProcess, code: int) -> int | None:
        ids = self._maps[number]["code"]
        if code not in ids and code != NONE:
            record = process.defined["code"].get(code)
            process.losses["references_lost"] += record is None
            ids[code] = -1 if record is None else self._new_code(record)
        return None if ids.get(code, -1) < 0 else ids[code]

    def _new_code(self, record: Row) -> int:
        flags = record["flags"] - (1 << 32 if record["flags"] >= 1 << 31 else 0)
        key = (
            record["filename"],
            record["qualname"],
            record["first_line"],
            flags,
            record["line_table"],
            record["template_lines"],
        )
        if key not in self._contexts:
            file = ("file", record["filename"])
            if file not in self._contexts:
                self._contexts[file] = len(self.tables["files"])
                self.tables["files"].append({"file": self._contexts[file], "path": record["filename"]})
            self._contexts[key] = len(self.tables["codes"])
            row = {"file": self._contexts[file], "qualname": key[1], "first_line": key[2], "flags": flags}
            row |= {"line_table": key[4], "template_lines": key[5] or None}
            self.tables["codes"].append({"code": self._contexts[key], **row})
        return self._contexts[key]

    def holder(self, process: PlainProcess, address: int, time_ns: int | None) -> tuple[int, int]:
        """The module of an address at a time (-1: none), and the offset in its file."""
        holders = [each for each in process.defined["module"].values() if each["start"] <= address < each["end"]]
        if not holders:
            return -1, address
        seen = [each for each in holders if time_ns is not None and each["time_ns"] <= time_ns]
        module = max(seen, key=lambda each: each["time_ns"]) if seen else min(holders, key=lambda each: each["time_ns"])
        return module["id"], (address - module["start"] + module["file_offset"]) % (1 << 64)

    def _addresses(self, number: int, process: PlainProcess) -> dict[Any, tuple[int, int]]:
        """The places of addresses: by time of rows, by node of native paths, and of start routines."""
        found: dict[Any, tuple[int, int]] = {}
        for pc, time in self._named(process, "pc"):
            found[pc, time] = self.holder(process, pc, time)
        nodes: dict[int, Row] = process.defined["native_stack"]
        times: dict[int, int] = {}
        for leaf, time in self._named(process, "native_stack"):
            for node in self._path(nodes, leaf, 0):
                times[node] = min(time, times.get(node, time))
        for node, time in times.items():
            if node in nodes:
                found["node", node] = self.holder(process, nodes[node]["pc"], time)
        for row in self.tables["threads"]:
            if row["process"] == number and row["start_frame"] is not None:
                found["start", row["start_frame"]] = self.holder(process, row["start_frame"], None)
        return found

    def _number_frames(self) -> None:
        places = sorted({place for found in self._frames for place in found.values()})
        ids = {place: number for number, place in enumerate(places)}
        for (module, offset), number in ids.items():
            row = {"native_frame": number, "module": None if module < 0 else module, "offset": offset}
            self.tables["native_frames"].append(row)
        for number, found in enumerate(self._frames):
            self._maps[number]["frame"] = {key: ids[place] for key, place in found.items()}
        for thread in self.tables["threads"]:
            maps = self._maps[thread["process"]]
            thread["creator"] = maps["thread"].get(thread["creator"])
            thread["start_frame"] = maps["frame"].get(("start", thread["start_frame"]))

    def _native_stacks(self, number: int, process: PlainProcess) -> None:
        maps, nodes = self._maps[number], process.defined["native_stack"]
        ids = maps["native_stack"]
        for leaf in sorted({node for node, _ in self._named(process, "native_stack")}):
            for node in self._path(nodes, leaf, 0, process, ids):
                record = nodes.get(node)
                process.losses["references_lost"] += record is None
                parent = None if record is None else ids.get(record["parent"])
                frame = maps["frame"].get(("node", node))
                key = ("native", parent, frame, None if record is None else maps["stack"].get(record["stack"]))
                new = len(self.tables["native_stacks"])
                ids[node] = new if frame is None else self._contexts.setdefault(key, new)
                if ids[node] == new:
                    row = {"parent": parent, "native_frame": frame, "stack": key[3]}
                    self.tables["native_stacks"].append({"native_stack": new, **row})

    def _rows(self, number: int, process: PlainProcess) -> None:
        maps = self._maps[number]
        freed: dict[int, Row] = {}
        for row in sorted(process.rows["freed"], key=lambda row: -row["time_ns"]):
            freed[row["block"]] = row
        looked_at = {row["block"] for row in process.rows["touched"]}
        for name, rows in process.rows.items():
            layout = LAYOUTS["records"][name]
            if name == "freed":
                continue
            for row in rows:
                final = {"process": number, **self._translated(layout, row, maps)}
                if name == "block":
                    end = freed.get(row["block"])
                    final["block"] = row["block"] if row["block"] in looked_at else None
                    final |= {
                        "freed_ns": end and end["time_ns"],
                        "freed_thread": end and maps["thread"].get(end["thread"]),
                    }
                self.tables[layout["table"]].append(final)

    def _referrers(self, number: int, process: PlainProcess) -> None:
        for link in process.defined["referrer"].values():
            row = {key: link[key] for key in ("time_ns", "chain", "link", "role", "size_bytes")}
            texts = {key: link[key] or None for key in ("type", "name")}
            stack = self._maps[number]["stack"].get(link["stack"])
            self.tables["referrers"].append({"process": number, **row, **texts, "stack": stack})

    def _translated(self, layout: Row, row: Row, maps: dict[str, dict[Any, int]]) -> Row:
        bools = {each["name"] for each in TABLES["tables"][layout["table"]]["columns"] if each["type"] == "bool"}
        final: Row = {}
        for field in layout["fields"]:
            value, to, column = row[field["name"]], field.get("refers"), field.get("column")
            if column is None:
                continue
            if to == "pc":
                value = maps["frame"].get((value, row.get("time_ns", row.get("start_ns"))))
            elif to is not None:
                value = maps[to].get(value)
            elif value == field.get("unknown"):
                value = None
            elif column in bools:
                # 0 no and 1 yes, or where 0 stands for unknown, 1 yes and 2 no.
                listed = {1: True, 2: False} if field.get("unknown") == 0 else {0: False, 1: True}
                value = listed.get(value)
            final[column] = value
        return final

    def _spans(self) -> None:
        spans = sorted(
            (span["start_ns"], number, span["span"])
            for number, process in enumerate(self.processes)
            for span in process.defined["span"].values()
        )
        ids = {(number, span): row for row, (_, number, span) in enumerate(spans)}
        for row, (_, number, own) in enumerate(spans):
            span = self.processes[number].defined["span"][own]
            parent = ids.get((number, span["parent"]), row)
            rest = {"thread": self._maps[number]["thread"][span["thread"]], "fields": span["fields"] or None}
            rest |= {key: span[key] for key in ("name", "start_ns", "end_ns")}
            if own:
                self._maps[number]["span"][own] = row
            self.tables["spans"].append(
                {"span": row, "parent": parent if parent < row else None, "process": number, **rest}
            )

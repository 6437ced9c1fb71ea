"""Turns a golden recording into a hostile one, at random but always the same for a seed."""

import json
import os
import random
import shutil
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from tachograph.format.spool.records import record_header
from tachograph.recorder.collect.running import boot_id, machine

MARK = "<tgx>"
"""An element that no report has: where it is in a page as it stands here, HTML was injected."""

INTEGERS = [0, 1, -1, 2, 7, 255, 256, 2**31 - 1, -(2**31), 2**32 - 1, 2**32 - 2, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]


def hostile_texts(canary: Path) -> list[str]:
    """Names and paths that would do harm where they are shown, opened or made part of a pattern."""
    return [
        f"</script>{MARK}<img src=x onerror=alert(1)>",
        f"\"'>{MARK}<svg/onload=alert(1)>",
        f"{{{{ 7 * 7 }}}}{MARK}{{% raw %}}",
        str(canary),
        f"../../../../../../../..{canary}",
        f"file://{canary}",
        "\x1b]0;title\x07\x1b[2J\x1b[31m",
        "\u202egnirts\u2028\u2029\u0000\u0085",
        "[red]rich[/red][link=file:///etc/passwd]x[/link]",
        "%s%n{0}{0.__class__}$(id)`id`;|&",
        "(a+)+$" * 20,
        "x" * 200_000,
        "",
        "\n" * 1000,
        "__main__",
    ]


class Mutator:
    """Mutations drawn from one random source; ``canary`` is a file that no reader may open."""

    def __init__(self, seed: int, canary: Path) -> None:
        self._random = random.Random(seed)
        self._texts = hostile_texts(canary)
        self._canary = canary

    def make(self, seeds: list[Path], target: Path) -> Path:
        """A hostile recording made of one of ``seeds``, in ``target`` or in a zip file beside; its path."""
        shutil.copytree(self._random.choice(seeds), target)
        kinds = [self._bytes, self._bytes, self._manifest, self._table, self._table, self._table, self._records]
        kinds += [self._records, self._layout, self._sources]
        for _ in range(self._random.choice((1, 1, 2, 4))):
            self._random.choice(kinds)(target)
        return self._zip(target) if self._random.random() < 0.2 else target

    def _files(self, folder: Path, suffix: str = "") -> list[Path]:
        found = (path for path in folder.rglob(f"*{suffix}") if path.is_file() and not path.is_symlink())
        return sorted(path for path in found if path.stat().st_size < 1 << 24)

    def _pick(self, folder: Path, suffix: str = "") -> Path | None:
        files = self._files(folder, suffix)
        return self._random.choice(files) if files else None

    # ---------------------------------------------------------------- bytes

    def _bytes(self, folder: Path) -> None:
        if (path := self._pick(folder)) is not None:
            path.write_bytes(self._spoilt(bytearray(path.read_bytes())))

    def _spoilt(self, data: bytearray) -> bytes:
        chance = self._random
        at, length = chance.randrange(len(data) + 1), chance.choice((1, 4, 8, 64, 1000))
        how = chance.randrange(6)
        if how == 0:
            for _ in range(chance.choice((1, 3, 50))):
                if data:
                    data[chance.randrange(len(data))] = chance.randrange(256)
        elif how == 1:
            del data[at:]
        elif how == 2:
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif how == 3:
            data[at:at] = chance.randbytes(length)
        elif how == 4:
            data[at:at] = data[max(0, at - length) : at] * chance.choice((1, 20))
        else:
            value = chance.choice(INTEGERS) & (2**64 - 1)
            data[at : at + 8] = struct.pack("<Q", value)[: len(data[at : at + 8])]
        return bytes(data)

    # ---------------------------------------------------------------- the manifest

    def _value(self) -> Any:
        deep: Any = []
        for _ in range(self._random.choice((3, 500))):
            deep = [deep]
        values = [None, True, [], {}, deep, 1e308, float("nan"), [1, "two", None], {"a": {"b": []}}]
        return self._random.choice([*values, *INTEGERS, *self._texts])

    def _manifest(self, folder: Path) -> None:
        path = folder / "manifest.json"
        if path not in self._files(folder, ".json"):
            return
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return
        if not isinstance(document, (dict, list)) or not document:
            return
        places: list[tuple[Any, Any]] = []
        self._places(document, places)
        for _ in range(self._random.choice((1, 1, 5))):
            owner, key = self._random.choice(places)
            try:
                if self._random.random() < 0.2:
                    del owner[key]
                else:
                    owner[key] = self._value()
            except (KeyError, IndexError):
                continue
        path.write_text(json.dumps(document), encoding="utf-8")

    def _places(self, node: Any, found: list[tuple[Any, Any]]) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            found.append((node, key))
            self._places(node[key], found)

    # ---------------------------------------------------------------- tables

    def _table(self, folder: Path) -> None:
        path = self._pick(folder, ".parquet")
        if path is None:
            return
        try:
            table = pq.read_table(path)
        except (pa.ArrowException, OSError):
            return
        for _ in range(self._random.choice((1, 1, 3))):
            table = self._changed(table)
        pq.write_table(table, path)
        self._agree(folder, path, table.num_rows)

    def _agree(self, folder: Path, path: Path, rows: int) -> None:
        """Make the manifest say as many rows as there are: the mutation is to get further than to that check."""
        if folder / "manifest.json" not in self._files(folder, ".json"):
            return
        try:
            document = json.loads((folder / "manifest.json").read_bytes())
            document["tables"][path.stem]["rows"] = rows
        except (OSError, ValueError, KeyError, TypeError):
            return
        (folder / "manifest.json").write_text(json.dumps(document), encoding="utf-8")

    def _changed(self, table: pa.Table) -> pa.Table:
        chance, rows = self._random, table.num_rows
        how = chance.randrange(10)
        if how == 0:
            return pa.concat_tables([table] * chance.choice((2, 50))) if rows < 10_000 else table
        if how == 1:
            return table.slice(chance.randrange(rows + 1))
        if how == 2 and rows:
            return table.take([chance.randrange(rows) for _ in range(rows)])
        if not table.num_columns:
            return table
        index = chance.randrange(table.num_columns)
        if how == 3:
            return table.remove_column(index)
        field = table.schema.field(index)
        if how == 4:
            other = chance.choice((pa.string(), pa.float64(), pa.int8(), pa.binary(), pa.list_(pa.int64())))
            return table.set_column(index, field.name, pa.nulls(rows, other))
        return table.set_column(index, pa.field(field.name, field.type), self._column(field.type, table[index]))

    def _column(self, kind: pa.DataType, column: pa.ChunkedArray) -> pa.Array:
        values = column.to_pylist()
        whole = self._random.random() < 0.3
        for index in range(len(values)):
            if whole or self._random.random() < 0.1:
                values[index] = self._cell(kind, len(values))
        return pa.array(values, kind)

    def _cell(self, kind: pa.DataType, rows: int) -> Any:
        chance = self._random
        if chance.random() < 0.1:
            return None
        if pa.types.is_integer(kind):
            bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
            least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            return min(most, max(least, chance.choice([*INTEGERS, rows, rows - 1, chance.randrange(rows + 2)])))
        if pa.types.is_boolean(kind):
            return chance.random() < 0.5
        if pa.types.is_binary(kind):
            return chance.randbytes(chance.choice((0, 1, 50, 5000)))
        return chance.choice(self._texts) if pa.types.is_string(kind) else None

    # ---------------------------------------------------------------- spool

    def _records(self, folder: Path) -> None:
        """Change what is inside records whose headers stay right, in segments and in the control file."""
        path = self._pick(folder, ".seg")
        if path is None:
            return
        data = bytearray(path.read_bytes())
        if len(data) < 72:
            return
        seq, at, places = struct.unpack_from("<I", data, 8)[0], 64, []
        while at + 8 <= len(data):
            header = struct.unpack_from("<Q", data, at)[0]
            length, kind = header & 0xFFFFFFFF, header >> 32 & 0xFF
            if kind == 0 or length < 8 or length % 8 or at + length > len(data):
                at += 8
                continue
            places.append((at, length, kind))
            at += length
        for _ in range(self._random.choice((1, 3, 10))):
            if places:
                self._record(data, seq, *self._random.choice(places))
        path.write_bytes(data)

    def _record(self, data: bytearray, seq: int, at: int, length: int, kind: int) -> None:
        chance = self._random
        how = chance.randrange(4)
        if how == 0:  # another kind or length, with a check that says so
            kind = chance.choice((kind, chance.randrange(1, 20), 255))
            length = chance.choice((length, 8, 16, 64, 8 * chance.randrange(1, 40)))
            struct.pack_into("<Q", data, at, record_header(at, length, kind, seq))
        elif length > 8:
            size = chance.choice((1, 2, 4, 8))
            place = at + 8 + size * chance.randrange(max(1, (length - 8) // size))
            value = chance.choice(INTEGERS) if how < 3 else chance.getrandbits(64)
            room = data[place : place + size]
            data[place : place + size] = struct.pack("<Q", value & (2**64 - 1))[: len(room)]

    def _sources(self, folder: Path) -> None:
        """Another process of an unfinished recording, with code from the canary, and a note that it was made here."""
        spool, manifest = folder / "spool", folder / "manifest.json"
        if spool.is_symlink() or spool.is_file() or manifest not in self._files(folder, ".json"):
            return
        spool.mkdir(exist_ok=True)
        segment = SegmentBuilder(0)
        segment.thread_start(0, 99, 1_000, main=True)
        names = [str(self._canary), f"../../../../../../../..{self._canary}", f"/proc/self/root{self._canary}"]
        for number, name in enumerate(self._random.sample(names, 2)):
            segment.code(number, name, "f", 1, b"")
            segment.stack(number, NONE, number, 0)
            segment.cpu(2_000 + number, 0, number)
            segment.module(number, name, number << 12, (number + 1) << 12)
        write_spool(spool, [segment.to_bytes()], control(seq=0), f"{self._random.randrange(1, 1 << 22)}-1000")
        self._forge(spool)
        try:
            document = json.loads(manifest.read_bytes())
            document["state"] = "recording"
            manifest.write_text(json.dumps(document), encoding="utf-8")
        except (OSError, ValueError, TypeError):
            return

    def _forge(self, spool: Path) -> None:
        """The note of the recording command, of which a forger knows all but one thing."""
        note: dict[str, Any] = {
            "boot": boot_id(),
            "machine": machine(),
            "processes": [],
            "directory": str(self._canary.parent),
        }
        note |= {"inode": spool.stat().st_ino, "time_ns": time.time_ns()}
        unknown = self._random.choice([("boot", "machine"), ("inode",), ("time_ns",)])
        note |= {name: self._random.choice(["", 0, 1 << 62, None]) for name in unknown}
        place = spool / "recorder.json"
        if place.is_dir() and not place.is_symlink():  # made by another mutation
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.write_text(json.dumps(note), encoding="ascii")

    # ---------------------------------------------------------------- layout

    def _layout(self, folder: Path) -> None:
        path = self._pick(folder)
        if path is None:
            return
        try:
            self._random.choice(self._ways(path))()
        except OSError:
            return

    def _ways(self, path: Path) -> list[Callable[[], object]]:
        def instead(make: Callable[[], object]) -> Callable[[], object]:
            def replace() -> None:
                path.unlink()
                make()

            return replace

        return [
            instead(lambda: path.symlink_to(self._canary)),
            instead(lambda: os.mkfifo(path)),
            instead(path.mkdir),
            instead(lambda: path.symlink_to("/dev/zero")),
            instead(lambda: path.symlink_to(path.name)),
            lambda: path.chmod(0),
            lambda: path.rename(path.with_name("9" * 200)),
            lambda: shutil.copy(path, path.with_name("1-1.000000.seg")),
            lambda: (path.parent / "spool").symlink_to("/"),
            lambda: os.truncate(path, 1 << 40),
        ]

    def _zip(self, folder: Path) -> Path:
        target = folder.with_suffix(".zip")
        chance = self._random
        method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(target, "w", method) as file:
            for path in self._files(folder):
                file.write(path, str(path.relative_to(folder.parent if chance.random() < 0.5 else folder)))
            if chance.random() < 0.2:
                file.writestr(chance.choice(("../up", "/etc/x", "a//b", "C:\\x", "spool/../../y", "a\0b")), b"x")
            if chance.random() < 0.1:
                link = zipfile.ZipInfo("link.parquet")
                link.external_attr = 0o120777 << 16
                file.writestr(link, str(self._canary))
        if chance.random() < 0.5:
            target.write_bytes(self._spoilt(bytearray(target.read_bytes())))
        return target

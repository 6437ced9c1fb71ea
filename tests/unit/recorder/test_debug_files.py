"""Source files and lines of native code, from libraries that were compiled for the test."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from tachograph.recorder.collect import debug_files, native_places
from tachograph.recorder.collect.debug_files import DebugError, LineTables, line_tables
from tachograph.recorder.collect.native_places import NativePlaces

native = pytest.importorskip("tachograph.recorder._native")

SOURCE = """\
#include "inline.h"

int first(int n) {
    return n + 1;
}

int second(int n) {
    int m = n * 3;
    return twice(m);
}
"""
INLINE = """\
static inline int twice(int n) {
    volatile int doubled = n;
    return doubled + doubled;
}
"""


def build(folder: Path, *flags: str) -> Path:
    """The library, with two functions and a third one that is inlined."""
    for name, text in (("code.c", SOURCE), ("inline.h", INLINE)):
        (folder / name).write_text(text, encoding="utf-8")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-O1", "-fPIC", "-shared", "-Wl,--build-id=sha1", *flags, "code.c", "-o", "code.so"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the compiler does not take {flags}: {done.stderr[:100]}")
    return folder / "code.so"


def bytes_of(library: Path, name: str) -> list[int]:
    """The file offsets of a function's bytes, by nm."""
    listed = subprocess.run(["nm", "-S", "-D", str(library)], check=True, capture_output=True, text=True).stdout
    (start, size) = next(line.split()[:2] for line in listed.splitlines() if line.endswith(f" T {name}"))
    return [int(start, 16) + at for at in range(int(size, 16))]


def check(library: Path, *, file: str = "code.c") -> None:
    places = NativePlaces()
    first, second = (places.resolve(str(library), bytes_of(library, name)) for name in ("first", "second"))
    assert places.unread == 0
    assert {(Path(each.function_source or "").name, each.function_line) for each in first} == {(file, 3)}
    assert {(Path(each.source or "").name, each.line) for each in first} <= {(file, 3), (file, 4), (file, 5)}
    assert {(Path(each.function_source or "").name, each.function_line) for each in second} == {(file, 7)}
    found = {(Path(each.source or "").name, each.line) for each in second}
    assert (
        {("inline.h", 2), ("inline.h", 3)}
        <= found
        <= {("inline.h", 2), ("inline.h", 3), *((file, n) for n in (7, 8, 9, 10))}
    )
    assert {each.symbol for each in first + second} == {"first", "second"}


@pytest.mark.parametrize("version", ["2", "3", "4", "5"])
def test_every_version_of_the_tables(tmp_path: Path, version: str) -> None:
    check(build(tmp_path, "-g", f"-gdwarf-{version}"))


OTHER = """\
int other_%d(int n) {
    return n + %d;
}
"""


def build_units(folder: Path, *flags: str) -> Path:
    """A library of 20 units, each with one function, and the two of ``SOURCE``."""
    names = [f"other_{number}.c" for number in range(20)]
    for number, name in enumerate(names):
        (folder / name).write_text(OTHER % (number, number), encoding="utf-8")
    return build(folder, *flags, *names)


@pytest.mark.broad
@pytest.mark.parametrize("version", ["2", *(pytest.param(each, marks=pytest.mark.slow) for each in "34"), "5"])
def test_only_the_units_that_hold_addresses_are_read(tmp_path: Path, version: str) -> None:
    library = build_units(tmp_path, "-g", f"-gdwarf-{version}", "-gz=none")
    whole = line_tables(str(library))
    assert whole is not None
    for name, file, lines in (("other_7", "other_7.c", {1, 2, 3}), ("first", "code.c", {3, 4, 5})):
        offsets = bytes_of(library, name)
        addresses = [address for _, address, _ in native.resolve(str(library), "", offsets)]
        part = line_tables(str(library), addresses)
        assert part is not None
        assert len(part.line) < len(whole.line) / 10
        found = native.source_lines(part.line, part.line_text, addresses, [])
        assert found == native.source_lines(whole.line, whole.line_text, addresses, [])
        assert {(Path(path).name, line) for path, line in found} <= {(file, line) for line in lines}
    check(library)


@pytest.mark.broad
def test_where_nothing_tells_which_units_hold_addresses_all_are_read(tmp_path: Path) -> None:
    library = build_units(tmp_path, "-g", "-gz=none")
    whole = line_tables(str(library))
    assert whole is not None
    for name in (".debug_aranges", ".debug_info"):
        subprocess.run(["objcopy", "--remove-section", name, str(library)], check=True)
        assert line_tables(str(library), [1]) == whole
        check(library)


@pytest.mark.broad
def test_damage_in_what_tells_of_units_does_no_harm(tmp_path: Path) -> None:
    library = build_units(tmp_path, "-g", "-gz=none")
    whole, offsets = library.read_bytes(), bytes_of(library, "other_7")
    for line in _readelf("-SW", library).splitlines():
        for name in (".debug_aranges ", ".debug_info ", ".debug_abbrev "):
            if name not in line:
                continue
            start, size = (int(field, 16) for field in line.partition("PROGBITS")[2].split()[1:3])
            for at in range(start, start + size, max(1, size // 60)):
                for value in (0, 0x7F, 0xFF):
                    library.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
                    (place, *_) = NativePlaces().resolve(str(library), offsets)
                    assert place.symbol == "other_7"
                    assert place.line in (None, 1, 2, 3)


@pytest.mark.parametrize("kind", ["zlib", "zstd"])
def test_compressed_sections(tmp_path: Path, kind: str) -> None:
    check(build(tmp_path, "-g", f"-gz={kind}"))


def test_functions_in_sections_of_their_own_and_those_that_were_dropped(tmp_path: Path) -> None:
    check(build(tmp_path, "-g", "-ffunction-sections", "-Wl,--gc-sections"))


def test_debug_information_in_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build(tmp_path, "-g")
    places = NativePlaces().resolve(str(library), bytes_of(library, "first"))
    (identity,) = (line.split()[-1] for line in _readelf("-n", library).splitlines() if "Build ID" in line)
    debug = tmp_path / "debug" / ".build-id" / identity[:2] / f"{identity[2:]}.debug"
    debug.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", str(library), str(debug)], check=True)
    subprocess.run(["strip", str(library)], check=True)
    assert NativePlaces().resolve(str(library), bytes_of(library, "first"))[0].line is None
    monkeypatch.setattr(debug_files, "DEBUG_FOLDER", str(tmp_path / "debug"))
    assert NativePlaces().resolve(str(library), bytes_of(library, "first")) == places
    # That of another build tells nothing.
    (tmp_path / "other").mkdir()
    other = build(tmp_path / "other", "-g", "-DOTHER", "-O0")
    shutil.copy(other, debug)
    assert NativePlaces().resolve(str(library), bytes_of(library, "first"))[0].line is None


def test_a_file_that_the_library_names(tmp_path: Path) -> None:
    library = build(tmp_path, "-g")
    for command in (
        ["objcopy", "--only-keep-debug", "code.so", "code.debug"],
        ["strip", "code.so"],
        ["objcopy", "--add-gnu-debuglink=code.debug", "code.so"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True)
    check(library)
    (tmp_path / ".debug").mkdir()
    (tmp_path / "code.debug").rename(tmp_path / ".debug" / "code.debug")
    check(library)


def test_none_are_looked_for_where_none_are_wanted(tmp_path: Path) -> None:
    library = build(tmp_path, "-g")
    (place, *_) = NativePlaces(lines=False).resolve(str(library), bytes_of(library, "first"))
    assert (place.symbol, place.line, place.function_source) == ("first", None, None)
    assert NativePlaces().resolve("/missing", [1, 2]) == [(None,) * 5] * 2
    assert NativePlaces().resolve("[vdso]", [1]) == [(None,) * 5]


@pytest.mark.parametrize("how", ["-gz=none", "-gz=zlib"])
def test_a_place_is_looked_for_once_and_the_library_may_be_replaced_then(tmp_path: Path, how: str) -> None:
    library = build(tmp_path, "-g", how)
    first, second = bytes_of(library, "first"), bytes_of(library, "second")
    expected = NativePlaces().resolve(str(library), [*first, *second])
    places = NativePlaces()
    assert places.resolve(str(library), first) == expected[: len(first)]
    # The table of lines was compressed: it is kept whole.
    kept = library.with_name("kept.so")
    library.rename(kept)
    shutil.copy(kept, library)
    asked = []

    def asking(debug_path: str, addresses: Collection[int]) -> LineTables | None:
        asked.append(addresses)
        return line_tables(debug_path, addresses)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_places, "line_tables", asking)
        assert places.resolve(str(library), [*first, *second]) == expected
    assert len(asked) == (how == "-gz=none")
    library.unlink()
    assert places.resolve(str(library), [*second, *first]) == [*expected[len(first) :], *expected[: len(first)]]


def test_more_than_is_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = build(tmp_path, "-g")
    monkeypatch.setattr(debug_files, "MOST_LINE_BYTES", 10)
    places = NativePlaces()
    (place, *_) = places.resolve(str(library), bytes_of(library, "first"))
    assert (places.unread, place.symbol, place.line) == (1, "first", None)


@pytest.mark.broad
def test_damaged_files_tell_nothing_wrong_and_do_no_harm(tmp_path: Path) -> None:
    library = build(tmp_path, "-g", "-gz=none")
    whole, offsets = library.read_bytes(), bytes_of(library, "second")
    tables = line_tables(str(library))
    assert tables is not None
    for at in range(len(tables.line)):
        for value in (0, 0x7F, 0xFF):
            damaged = tables.line[:at] + bytes([value]) + tables.line[at + 1 :]
            for found in native.source_lines(damaged, tables.line_text, offsets, offsets[:1]):
                assert found is None or isinstance(found[1], int)
    for size in (0, 10, 64, 100, len(whole) // 2, len(whole) - 40):
        library.write_bytes(whole[:size])
        places = NativePlaces()
        assert len(places.resolve(str(library), offsets)) == len(offsets)


def test_many_sequences_that_overlap_take_no_more_time_than_their_bytes() -> None:
    """Each of 100,000 sequences spans each of 100,000 wanted addresses."""
    sequence = b"\x00\x09\x02" + struct.pack("<Q", 16) + b"\x01\x02\x80\x80\x80\x01\x00\x01\x01"
    header = struct.pack("<BBbBB", 1, 1, -5, 14, 13) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + b"\0a.c\0\0\0\0\0"
    unit = struct.pack("<HI", 3, len(header)) + header + sequence * 100_000
    found = native.source_lines(struct.pack("<I", len(unit)) + unit, b"", list(range(20, 100_020)), [])
    assert found[0] == ("a.c", 1)


def test_a_compressed_section_that_lies_about_its_size() -> None:
    with pytest.raises(DebugError):
        debug_files._uncompressed(struct.pack("<IIQQ", 1, 0, 1 << 40, 1) + b"x", 1 << 20)
    with pytest.raises(DebugError):
        debug_files._uncompressed(struct.pack("<IIQQ", 1, 0, 100, 1) + b"x", 1 << 20)


def _readelf(flag: str, path: Path) -> str:
    return subprocess.run(["readelf", flag, str(path)], check=True, capture_output=True, text=True).stdout

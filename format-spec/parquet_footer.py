"""Takes out of a Parquet file's footer what no reader needs: of a small file it is a fifth of the footer.

A footer is one structure, FileMetaData, in Thrift's compact protocol. What is taken out is optional, and stands at the
end of its structure: there it is simply left out, and nothing before it changes. Field numbers are those of
parquet.thrift (apache/parquet-format).
"""

from __future__ import annotations

from typing import Final

MAGIC: Final = b"PAR1"
_STOP: Final = b"\0"
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_COLUMN_META_DATA: Final = 3
# The last field that is kept. Behind it: the order of statistics, of which there are none; offsets and sizes that the
# columns have as well; how often each encoding occurs, and how long values and levels are.
_LAST_OF_FILE: Final = 6
_LAST_OF_ROW_GROUP: Final = 4
_LAST_OF_COLUMN: Final = 11

_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12
_INTEGERS: Final = (4, 5, 6)


def trimmed(file: bytes) -> bytes:
    """A Parquet file without what is not needed in its footer; as it is, if the footer is another than is known here.

    No page is moved or changed. Statistics go as well: not for files that have some.
    """
    if len(file) < 12 or not file.endswith(MAGIC):
        return file
    end = len(file) - 8
    start = end - int.from_bytes(file[end : end + 4], "little")
    if start < len(MAGIC):
        return file
    try:
        footer = _file(file[start:end])
    except (IndexError, ValueError):
        return file
    return b"".join((file[:start], footer, len(footer).to_bytes(4, "little"), MAGIC))


def _file(footer: bytes) -> bytes:
    place, last = 0, 0
    pieces = []
    done = 0
    while True:
        field, kind, at = _field(footer, place, last)
        if not kind or field > _LAST_OF_FILE:
            if _behind_struct(footer, place, last) != len(footer):
                raise ValueError("more than one structure")
            pieces += [footer[done:place], _STOP]
            return b"".join(pieces)
        if field == _ROW_GROUPS:
            count, at = _structs(footer, at)
            pieces.append(footer[done:at])
            for _ in range(count):
                at = _row_group(footer, at, pieces)
            done = at
        else:
            at = _behind(footer, at, kind)
        place, last = at, field


def _row_group(footer: bytes, place: int, pieces: list[bytes]) -> int:
    """Adds what is kept of a row group; returns where the next one begins."""
    done, last = place, 0
    while True:
        field, kind, at = _field(footer, place, last)
        if not kind or field > _LAST_OF_ROW_GROUP:
            pieces += [footer[done:place], _STOP]
            return _behind_struct(footer, place, last)
        if field == _COLUMNS:
            count, at = _structs(footer, at)
            for _ in range(count):
                done, at = _column(footer, at, done, pieces)
        else:
            at = _behind(footer, at, kind)
        place, last = at, field


def _column(footer: bytes, place: int, done: int, pieces: list[bytes]) -> tuple[int, int]:
    """Adds all up to the end of a column's meta data; returns up to where all is added, and where the next begins."""
    last = 0
    while True:
        field, kind, at = _field(footer, place, last)
        if not kind:
            return done, at
        if field == _COLUMN_META_DATA:
            inner = 0
            while True:
                place = at
                number, kind, at = _field(footer, place, inner)
                if not kind or number > _LAST_OF_COLUMN:
                    break
                at, inner = _behind(footer, at, kind), number
            pieces += [footer[done:place], _STOP]
            done = at = _behind_struct(footer, place, inner)
        else:
            at = _behind(footer, at, kind)
        place, last = at, field


def _field(data: bytes, place: int, last: int) -> tuple[int, int, int]:
    """Number and type of a field, and where its value begins; type 0: the structure ends."""
    head = data[place]
    if head == 0:
        return last, 0, place + 1
    if head < 16:
        raise ValueError("a field far from the one before it")
    return last + (head >> 4), head & 15, place + 1


def _structs(data: bytes, place: int) -> tuple[int, int]:
    """The length of a list of structures, and where the first begins."""
    count, kind, at = _list(data, place)
    if kind != _STRUCT:
        raise ValueError("not a list of structures")
    return count, at


def _list(data: bytes, place: int) -> tuple[int, int, int]:
    head = data[place]
    count, at = _unsigned(data, place + 1) if head >> 4 == 15 else (head >> 4, place + 1)
    return count, head & 15, at


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _behind_struct(data: bytes, place: int, last: int) -> int:
    while True:
        last, kind, place = _field(data, place, last)
        if not kind:
            return place
        place = _behind(data, place, kind)


def _behind(data: bytes, place: int, kind: int) -> int:
    """Where a value ends."""
    if kind in _INTEGERS:
        while data[place] > 127:
            place += 1
        return place + 1
    if kind == _BINARY:
        length, place = _unsigned(data, place)
        return place + length
    if kind == _STRUCT:
        return _behind_struct(data, place, 0)
    if kind in (_LIST, _SET):
        count, element, place = _list(data, place)
        for _ in range(count):
            place = place + 1 if element < _BYTE else _behind(data, place, element)
        return place
    if kind > _DOUBLE:
        raise ValueError("a value of a type that footers have not")
    return place + {_BYTE: 1, _DOUBLE: 8}.get(kind, 0)

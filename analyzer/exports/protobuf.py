"""Writes Protocol Buffers messages: the part of the wire format that pprof, OTLP and Perfetto need.

https://protobuf.dev/programming-guides/encoding: a message is a sequence of fields, each a tag (number and wire type)
and a value. A library that writes them would be one more dependency of every installation.
"""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; a negative one as its 64-bit two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


class Message:
    """A message in the making. Methods append one field each and return the message."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def number(self, field: int, value: int) -> Message:
        """A field of type int32, int64, uint32, uint64, bool or enum."""
        self._parts.append(varint(field << 3 | _VARINT) + varint(value))
        return self

    def fixed64(self, field: int, value: int) -> Message:
        """A field of type fixed64."""
        self._parts.append(varint(field << 3 | _FIXED64) + value.to_bytes(8, "little"))
        return self

    def blob(self, field: int, value: bytes) -> Message:
        """A field of type bytes."""
        self._parts.append(varint(field << 3 | _BYTES) + varint(len(value)) + value)
        return self

    def text(self, field: int, value: str) -> Message:
        """A field of type string."""
        return self.blob(field, value.encode("utf-8", "replace"))

    def message(self, field: int, value: Message) -> Message:
        """A field that is a message."""
        return self.blob(field, value.to_bytes())

    def packed(self, field: int, values: Iterable[int]) -> Message:
        """A repeated field of numbers."""
        return self.blob(field, b"".join(map(varint, values)))

    def to_bytes(self) -> bytes:
        """The message on the wire."""
        return b"".join(self._parts)

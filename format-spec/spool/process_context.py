"""Decodes OpenTelemetry's process context (OTEP 4719): attributes of the resource that a program has published.

Its payload is a ``ProcessContext`` of Protocol Buffers, of which only the resource is read. Attributes that identify a
service and where it runs are kept; others may be anything, such as a command line with a password in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

KEPT = ("service.", "deployment.", "telemetry.", "cloud.", "k8s.", "container.", "faas.", "host.")
"""Beginnings of the names of attributes that are kept."""

LONGEST = 4000
"""Characters of all attributes as JSON; those that would make it longer are left out."""
LONGEST_NAME, LONGEST_VALUE = 100, 200

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_RESOURCE, _ATTRIBUTES, _KEY, _VALUE = 1, 1, 1, 2
_STRING, _INT = 1, 3

Value = str | int


def resource_text(digits: str | None) -> str | None:
    """The attributes as a JSON object in ASCII; None where there are none, or the payload is damaged."""
    try:
        payload = bytes.fromhex(digits or "")
        attributes = dict(_attributes(payload))
    except (ValueError, IndexError):
        return None
    kept: dict[str, Value] = {}
    for key, value in sorted(attributes.items()):
        if len(json.dumps({**kept, key: value})) <= LONGEST:
            kept[key] = value
    return json.dumps(kept) if kept else None


def _attributes(payload: bytes) -> Iterator[tuple[str, Value]]:
    for number, resource in _fields(payload):
        for inner, pair in _fields(resource) if number == _RESOURCE and isinstance(resource, bytes) else ():
            if inner != _ATTRIBUTES or not isinstance(pair, bytes):
                continue
            fields = dict(_fields(pair))
            key, value = fields.get(_KEY), fields.get(_VALUE)
            if not isinstance(key, bytes) or not isinstance(value, bytes):
                continue
            name, plain = key.decode(), _plain(value)
            if plain is not None and len(name) <= LONGEST_NAME and name.startswith(KEPT):
                yield name, plain


def _plain(message: bytes) -> Value | None:
    """An ``AnyValue`` that is a text or a whole number; None for others."""
    for number, value in _fields(message):
        if number == _STRING and isinstance(value, bytes):
            return value.decode()[:LONGEST_VALUE]
        if number == _INT and isinstance(value, int):
            return value - (1 << 64) if value >= 1 << 63 else value
    return None


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Numbers and values of a message's fields: whole numbers, else bytes.

    Errors:
        ValueError, IndexError: it is none.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            number, at = _varint(message, at)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if size > len(message) - at:
            raise ValueError("a field that is longer than the message")
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = shift = 0
    while shift < 64:
        byte = message[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (1 << 64) - 1, at
        shift += 7
    raise ValueError("a number of more than 64 bits")

"""What a receiver of OTLP answers: protocol buffers, of which few fields matter."""

from __future__ import annotations

from collections.abc import Iterator

from ..otlp_fields import ExportProfilesPartialSuccess, ExportProfilesServiceResponse
from .http_client import Answer

_STATUS_MESSAGE = 2
"""Field ``message`` of google.rpc.Status, which refuses."""


def explain(answer: Answer) -> str:
    """The message of a refusal."""
    if "protobuf" in answer.content_type:
        found = [value for number, value in _fields(answer.body) if number == _STATUS_MESSAGE]
        return _text(found[-1]) if found else ""
    return "" if "html" in answer.content_type else answer.body[:4096].decode("utf-8", "replace")


def remarks(answer: Answer) -> list[str]:
    """What was refused of a request that was accepted, and why; other warnings."""
    if "protobuf" not in answer.content_type:
        return []
    rejected, why = 0, ""
    for number, value in _fields(answer.body):
        if number == ExportProfilesServiceResponse.PARTIAL_SUCCESS and isinstance(value, bytes):
            for part, inner in _fields(value):
                if part == ExportProfilesPartialSuccess.REJECTED_PROFILES and isinstance(inner, int):
                    rejected = inner
                elif part == ExportProfilesPartialSuccess.ERROR_MESSAGE:
                    why = _text(inner)
    if rejected:
        return [f"{rejected:,} profiles were refused{f': {why}' if why else ''}"]
    return [why] if why else []


def _text(value: int | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, up to where it is damaged."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield tag >> 3, value
        else:
            length, place = (8 if kind == 1 else 4, place) if kind in (1, 5) else _varint(data, place)
            if kind not in (1, 2, 5) or place + length > len(data):
                return
            yield tag >> 3, data[place : place + length]
            place += length


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number and the place after it; of one that is cut off, what there is of it."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        value |= (data[place] & 0x7F) << shift
        place += 1
        if not data[place - 1] & 0x80:
            break
    return value, place

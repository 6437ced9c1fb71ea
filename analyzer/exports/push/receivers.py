"""Requests for each server: Pyroscope's and Parca's documented endpoints for pprof, and OTLP over HTTP.

- Pyroscope, https://grafana.com/docs/pyroscope/latest/reference-server-api/: ``POST /ingest?name=...&format=pprof``.
- Parca, profilestore.proto of github.com/parca-dev/parca: ``POST /api/profiles/writeraw`` with a JSON object.
- OTLP 1.11.0, https://opentelemetry.io/docs/specs/otlp/#otlphttp: ``POST /v1development/profiles``. Its answers are
  protocol buffers, of which a few fields are read.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping

from tachograph import __version__

from ...recording.question_options import ExportFormat, Metric
from ...recording.text import printable
from ..extract import Extract
from ..otlp import SERVICE, service_name
from ..otlp_fields import ExportProfilesPartialSuccess, ExportProfilesServiceResponse
from ..value_types import value_types
from .http_client import OTLP, OURS, Address, Answer, PushError, Request, read_headers

INGEST, WRITE_RAW, PROFILES = "/ingest", "/profiles/writeraw", "/v1development/profiles"

_SECRET = 6
"""A value of a header with so many characters is not shown; shorter ones are names of tenants."""

MAX_OTLP = 64 << 20
"""A message of OTLP should not be longer."""


def make_request(name: str, extract: Extract, data: bytes, address: Address, environment: Mapping[str, str]) -> Request:
    """The request that sends an export; ``name`` is that of its format.

    Errors:
        PushError: there is no way to send it there.
    """
    if name == ExportFormat.OTLP:
        return _otlp(data, address, environment)
    path = address.path.rstrip("/")
    if path.endswith(INGEST):
        return _pyroscope(extract, data, address.at(path), environment)
    if path.endswith(WRITE_RAW):
        return _parca(extract, data, address.at(path), environment)
    raise PushError(
        f"no receiver of pprof is known at {address.shown}:"
        " the URL has to end with /ingest (Pyroscope) or /api/profiles/writeraw (Parca)"
    )


def _pyroscope(extract: Extract, data: bytes, address: Address, environment: Mapping[str, str]) -> Request:
    start, length = extract.start_utc_ns, extract.duration_ns
    if start is None or length is None:
        raise PushError("Pyroscope needs to know when a profile was taken, and the recording does not tell")
    first = start // 10**9
    asking = address.asking(
        name=_pyroscope_name(extract),
        **{"from": str(first), "until": str(max(first + 1, -(-(start + length) // 10**9)))},
        format="pprof",
        spyName="tachograph",
    )
    fields = {"profile": ("profile.pprof", data)}
    config = _sample_types(extract)
    if config:
        fields["sample_type_config"] = ("sample_type_config.json", json.dumps(config).encode())
    content_type, body = _form(fields)
    return _request(asking, {"content-type": content_type}, body, environment, (OURS,), _text, _silent)


def _parca(extract: Extract, data: bytes, address: Address, environment: Mapping[str, str]) -> Request:
    kind = "memory" if extract.heap else {Metric.CPU: "process_cpu"}.get(extract.metric, str(extract.metric))
    names = {"__name__": kind, "job": service_name(extract.recording), **_labels(extract)}
    labels = [{"name": key, "value": value} for key, value in names.items()]
    profile = base64.b64encode(data).decode()
    # No location has an address, so that there is none to be normalized.
    document = {"series": [{"labels": {"labels": labels}, "samples": [{"rawProfile": profile}]}], "normalized": True}
    headers = {"content-type": "application/json"}
    return _request(address, headers, json.dumps(document).encode(), environment, (OURS,), _text, _silent)


def _otlp(data: bytes, address: Address, environment: Mapping[str, str]) -> Request:
    if len(data) > MAX_OTLP:
        raise PushError(
            f"{len(data) >> 20} MiB are more than OTLP wants to have sent at once ({MAX_OTLP >> 20} MiB):"
            " choose a part with --from and --to, --thread, or --scope project"
        )
    if address.path in ("", "/"):
        address = address.at(PROFILES)
    headers = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
    body = gzip.compress(data, 6, mtime=0)
    answers = explain, remarks
    return _request(address, headers, body, environment, (OURS, *OTLP), *answers)


def _request(
    address: Address,
    headers: Mapping[str, str],
    body: bytes,
    environment: Mapping[str, str],
    variables: tuple[str, ...],
    explain: Callable[[Answer], str],
    remarks: Callable[[Answer], list[str]],
) -> Request:
    given = read_headers(environment, variables)
    defaults = {"user-agent": f"tachograph/{__version__}"}
    if address.authorization is not None:
        defaults["authorization"] = address.authorization
    words = [word for value in given.values() for word in (value, value.partition(" ")[2]) if len(word) >= _SECRET]
    return Request(
        address.url, address.shown, {**defaults, **given, **headers}, body, explain, remarks, (*address.secrets, *words)
    )


def _text(answer: Answer) -> str:
    """A refusal in words: plain text, or the message of a JSON object."""
    text = answer.body[:4096].decode("utf-8", "replace")
    if "json" in answer.content_type:
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError):
            return text
        if isinstance(document, dict) and isinstance(document.get("message"), str):
            return str(document["message"])
    return "" if "html" in answer.content_type else text


def _silent(_: Answer) -> list[str]:
    return []


_STANDARD = frozenset({"samples", "cpu", "alloc_objects", "alloc_space", "inuse_objects", "inuse_space"})
"""Types of samples that Pyroscope knows by itself."""


def _sample_types(extract: Extract) -> dict[str, dict[str, object]]:
    """Names and units of the value types that Pyroscope does not know. Empty if it knows all."""
    types = value_types(extract)
    if all(each.name in _STANDARD for each in types):
        return {}
    units = {"bytes": "bytes", "count": "samples", "nanoseconds": "samples"}
    held = extract.metric in (Metric.LIVE, Metric.RESIDENT, Metric.END)
    return {
        each.name: {
            "units": units[each.unit],
            "aggregation": "average" if held else "sum",
            "display-name": each.name,
            "sampled": False,
        }
        for each in types
        if each.name != "samples"
    }


def _pyroscope_name(extract: Extract) -> str:
    """``name{label=value,...}``."""
    name = re.sub(r"[^A-Za-z0-9._/-]", "_", service_name(extract.recording))
    labels = [f"{key}={re.sub(r'[{},=]', '_', value)}" for key, value in _labels(extract).items()]
    return f"{name}{{{','.join(labels)}}}"


def _labels(extract: Extract) -> dict[str, str]:
    """The recording's labels and its host, under names that Prometheus allows."""
    manifest = extract.recording.manifest
    values = {"instance": manifest.host} if manifest.host else {}
    values |= {key: value for key, value in manifest.labels.items() if key not in ("service", SERVICE)}
    labels = {}
    for key, value in values.items():
        name = re.sub(r"[^A-Za-z0-9_]", "_", key).lstrip("_")
        if name and value:
            labels[f"_{name}" if name[0].isdigit() else name] = printable(value, 300)
    labels.pop("job", None)
    return labels


def _form(fields: Mapping[str, tuple[str, bytes]]) -> tuple[str, bytes]:
    """Files of a form (RFC 7578): its type and its body."""
    boundary = f"tachograph-{secrets.token_hex(16)}"
    parts = []
    for name, (file, content) in fields.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n'
        parts += [f"{head}Content-Type: application/octet-stream\r\n\r\n".encode(), content, b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(parts)


_STATUS_MESSAGE = 2
"""Field ``message`` of google.rpc.Status, which refuses."""


def explain(answer: Answer) -> str:
    """The message of a refusal."""
    if "protobuf" in answer.content_type:
        messages = [value for number, value in _fields(answer.body) if number == _STATUS_MESSAGE]
        return _field_text(messages[-1]) if messages else ""
    return "" if "html" in answer.content_type else answer.body[:4096].decode("utf-8", "replace")


def remarks(answer: Answer) -> list[str]:
    """Reasons for parts that were refused of an accepted request, and other warnings."""
    if "protobuf" not in answer.content_type:
        return []
    rejected, why = 0, ""
    for number, value in _fields(answer.body):
        if number == ExportProfilesServiceResponse.PARTIAL_SUCCESS and isinstance(value, bytes):
            for part, inner in _fields(value):
                if part == ExportProfilesPartialSuccess.REJECTED_PROFILES and isinstance(inner, int):
                    rejected = inner
                elif part == ExportProfilesPartialSuccess.ERROR_MESSAGE:
                    why = _field_text(inner)
    if rejected:
        return [f"{rejected:,} profiles were refused{f': {why}' if why else ''}"]
    return [why] if why else []


def _field_text(value: int | bytes) -> str:
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
    """A number and the place after it; one that is cut off counts as far as it goes."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        value |= (data[place] & 0x7F) << shift
        place += 1
        if not data[place - 1] & 0x80:
            break
    return value, place

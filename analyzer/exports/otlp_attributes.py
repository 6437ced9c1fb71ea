"""Attributes of OpenTelemetry: what is known of a process, under the names of its semantic conventions.

https://opentelemetry.io/docs/specs/semconv/resource/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..recording.opened import Recording
from ..recording.process_names import process_names
from ..recording.text import printable
from . import otlp_fields as fields
from .protobuf import Message

Value = str | int | Sequence[str]

SERVICE = "service.name"

_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "i686": "x86", "ppc64le": "ppc64"}
"""What OpenTelemetry calls machines, where it has a name of its own for them."""


def any_value(value: Value) -> Message:
    """A value."""
    if isinstance(value, str):
        return Message().text(fields.AnyValue.STRING_VALUE, value)
    if isinstance(value, int):
        return Message().number(fields.AnyValue.INT_VALUE, value)
    values = Message()
    for each in value:
        values.message(fields.ArrayValue.VALUES, any_value(each))
    return Message().message(fields.AnyValue.ARRAY_VALUE, values)


def key_values(attributes: Mapping[str, Value]) -> list[Message]:
    """Attributes of a resource."""
    each = fields.KeyValue
    return [Message().text(each.KEY, key).message(each.VALUE, any_value(value)) for key, value in attributes.items()]


def service_name(recording: Recording) -> str:
    """What the program is called: by a label, else after its script, module or command."""
    labels = recording.manifest.labels
    named = labels.get(SERVICE) or labels.get("service")
    names = process_names(recording.table("processes"), recording.manifest.argv)
    return printable(named or next(iter(names), "unnamed"), 256)


def resources(recording: Recording) -> list[dict[str, Value]]:
    """The attributes of each process; what is unknown is left out.

    The recording's labels are among them: a label counts where it has the name of an attribute.
    """
    manifest, table = recording.manifest, recording.table("processes")
    common: dict[str, Value] = {SERVICE: service_name(recording)}
    for key, text in (("host.name", manifest.host), ("os.description", manifest.os)):
        if text:
            common[key] = printable(text, 256)
    if manifest.os:
        common["os.type"] = manifest.os.split()[0].split("-")[0].lower()
    if manifest.machine:
        common["host.arch"] = _ARCHITECTURES.get(manifest.machine, printable(manifest.machine, 64))
    labels = {printable(key, 80): printable(value, 300) for key, value in manifest.labels.items()}
    names = process_names(table, manifest.argv)
    columns = (table.column(name).to_pylist() for name in ("pid", "executable", "python_version"))
    found = []
    for number, (pid, executable, version) in enumerate(zip(*columns, strict=True)):
        process: dict[str, Value] = {"process.executable.name": names[number]}
        if pid is not None:
            process["process.pid"] = pid
        if executable:
            process["process.executable.path"] = printable(executable, 4096)
        if number == 0 and manifest.argv:
            process["process.command_args"] = [printable(each, 500) for each in manifest.argv[:100]]
        if version:
            process |= {"process.runtime.name": "cpython", "process.runtime.version": printable(version, 64)}
        found.append({**common, **process, **labels})
    return found

"""OpenTelemetry's profiles signal: a protocol buffer ``ProfilesData``, which OTLP sends as it is (``otlp_fields``).

One resource for each process, and in it one profile for each type of values, the one that is shown first before the
others. Sums are those of pprof. The dictionary holds each string, function, location and attribute once; other messages
refer to its tables by number. Attributes of a process have the names of OpenTelemetry's semantic conventions:
https://opentelemetry.io/docs/specs/semconv/resource/
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO

import numpy as np
import pandas as pd

from tachograph import __version__

from ..recording.opened import Recording
from ..recording.text import printable
from ..recording.traced_requests import read_traced_requests
from . import otlp_fields as fields
from .extract import Extract, Options, Thread
from .frame_tree import FrameTree
from .protobuf import Message
from .value_types import ValueType, default_type, period_of, value_sums, value_types

Value = str | int | Sequence[str]

SERVICE = "service.name"

_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "i686": "x86", "ppc64le": "ppc64"}
"""OpenTelemetry's names of machines, where it has one."""


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
    """Name of the service: from a label, else the program's own, else from the script, module or command."""
    labels = recording.manifest.labels
    own = next((str(each[SERVICE]) for each in recording.all_processes.resource if each.get(SERVICE)), None)
    named = labels.get(SERVICE) or labels.get("service") or own
    return printable(named or next(iter(recording.all_processes.name), "unnamed"), 256)


def resources(recording: Recording) -> list[dict[str, Value]]:
    """The known attributes of each process.

    What the program has published of itself is among them, and the recording's labels, which count before it.
    """
    manifest, processes = recording.manifest, recording.all_processes
    common: dict[str, Value] = {SERVICE: service_name(recording)}
    for key, text in (("host.name", manifest.host), ("os.description", manifest.os)):
        if text:
            common[key] = printable(text, 256)
    if manifest.os:
        common["os.type"] = manifest.os.split()[0].split("-")[0].lower()
    if manifest.machine:
        common["host.arch"] = _ARCHITECTURES.get(manifest.machine, printable(manifest.machine, 64))
    labels = {printable(key, 80): printable(value, 300) for key, value in manifest.labels.items()}
    if "service" in labels:
        labels.setdefault(SERVICE, service_name(recording))
    columns = (
        processes.name,
        processes.pid.tolist(),
        processes.executable,
        processes.python_version,
        processes.resource,
    )
    resources = []
    for number, (name, pid, executable, version, own) in enumerate(zip(*columns, strict=True)):
        process: dict[str, Value] = {"process.executable.name": name, "process.pid": pid}
        if executable:
            process["process.executable.path"] = printable(executable, 4096)
        if number == 0 and manifest.argv:
            process["process.command_args"] = [printable(each, 500) for each in manifest.argv[:100]]
        if version:
            process |= {"process.runtime.name": "cpython", "process.runtime.version": printable(version, 64)}
        resources.append({**common, **process, **own, **labels})
    return resources


class _Table:
    """Encoded entries, each once; the first is the zero value."""

    def __init__(self, zero: bytes = b"") -> None:
        self.entries = {zero: 0}

    def add(self, entry: bytes) -> int:
        return self.entries.setdefault(entry, len(self.entries))


class Dictionary:
    """Builds the dictionary: methods return the number of an entry. It holds only entries that were looked up."""

    def __init__(self, tree: FrameTree, threads: Sequence[Thread]) -> None:
        self._tree, self._threads = tree, threads
        self._strings, self._attributes, self._mappings = _Table(), _Table(), _Table()
        self._functions, self._locations, self._stacks = _Table(), _Table(), _Table()
        self._links = _Table(_link(bytes(16), bytes(8)))
        self._of_frame: dict[int, int] = {}
        self._of_node: dict[int, int] = {}
        self._of_thread: dict[int, tuple[int, ...]] = {}

    def string(self, text: str) -> int:
        """A text."""
        return self._strings.add(text.encode("utf-8", "replace"))

    def attribute(self, key: str, value: Value) -> int:
        """A name and its value."""
        each = fields.KeyValueAndUnit
        message = Message().number(each.KEY_STRINDEX, self.string(key)).message(each.VALUE, any_value(value))
        return self._attributes.add(message.to_bytes())

    def thread(self, number: int) -> tuple[int, ...]:
        """The attributes of a thread's samples."""
        attributes = self._of_thread.get(number)
        if attributes is None:
            thread = self._threads[number]
            values: dict[str, Value] = {"thread.name": thread.name}
            if thread.tid is not None:
                values["thread.id"] = thread.tid
            attributes = self._of_thread[number] = tuple(self.attribute(key, value) for key, value in values.items())
        return attributes

    def value_type(self, name: str, unit: str) -> Message:
        """Type of values; the message itself, for it is in no table."""
        each = fields.ValueType
        return Message().number(each.TYPE_STRINDEX, self.string(name)).number(each.UNIT_STRINDEX, self.string(unit))

    def stack(self, node: int) -> int:
        """The stack of a node of the tree."""
        number = self._of_node.get(node)
        if number is None:
            locations = [self._location(frame) for frame in reversed(self._tree.path(node))]
            stack = Message().packed(fields.Stack.LOCATION_INDICES, locations)
            number = self._of_node[node] = self._stacks.add(stack.to_bytes())
        return number

    def link(self, trace: bytes, span: bytes) -> int:
        """A span of a trace."""
        return self._links.add(_link(trace, span))

    def to_message(self) -> Message:
        """The tables."""
        each = fields.ProfilesDictionary
        dictionary = Message()
        for field, table in (
            (each.MAPPING_TABLE, self._mappings),
            (each.LOCATION_TABLE, self._locations),
            (each.FUNCTION_TABLE, self._functions),
            (each.LINK_TABLE, self._links),
            (each.STRING_TABLE, self._strings),
            (each.ATTRIBUTE_TABLE, self._attributes),
            (each.STACK_TABLE, self._stacks),
        ):
            for entry in table.entries:
                dictionary.blob(field, entry)
        return dictionary

    def _location(self, number: int) -> int:
        earlier = self._of_frame.get(number)
        if earlier is not None:
            return earlier
        frame = self._tree.frames[number]
        function = self._tree.functions[frame.function]
        line = Message().number(fields.Line.FUNCTION_INDEX, self._function(frame.function))
        if frame.line is not None:
            line.number(fields.Line.LINE, frame.line)
        location = Message()
        if function.module is not None:
            mapping = Message().number(fields.Mapping.FILENAME_STRINDEX, self.string(function.module))
            location.number(fields.Location.MAPPING_INDEX, self._mappings.add(mapping.to_bytes()))
        location.message(fields.Location.LINES, line)
        if function.native or function.file is not None:
            kind = self.attribute("profile.frame.type", "native" if function.native else "cpython")
            location.packed(fields.Location.ATTRIBUTE_INDICES, [kind])
        number_of_location = self._of_frame[number] = self._locations.add(location.to_bytes())
        return number_of_location

    def _function(self, number: int) -> int:
        function = self._tree.functions[number]
        message = Message().number(fields.Function.NAME_STRINDEX, self.string(function.name))
        if function.file is not None:
            message.number(fields.Function.FILENAME_STRINDEX, self.string(function.file))
        if function.first_line is not None:
            message.number(fields.Function.START_LINE, function.first_line)
        return self._functions.add(message.to_bytes())


def _link(trace: bytes, span: bytes) -> bytes:
    return Message().blob(fields.Link.TRACE_ID, trace).blob(fields.Link.SPAN_ID, span).to_bytes()


_NAMES = {"wait": "off_cpu"}
"""Types that the signal has its own names for."""


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes samples with their lines; threads are attributes of the samples, processes are resources.

    Samples within requests that OpenTelemetry traced link to the trace and the span.
    """
    extract = replace(extract, requests=read_traced_requests(extract.recording))
    tree = extract.tree(lines=True, native=options.native)
    sums = value_sums(extract, tree)
    dictionary = Dictionary(tree, extract.threads)
    attributes = resources(extract.recording)
    process = np.array([each.process for each in extract.threads], np.int64)
    data = Message()
    for number, mine in sums.groupby(process[sums["thread"].to_numpy(np.int64)]):
        resource = Message()
        for each in key_values(attributes[int(number)]):
            resource.message(fields.Resource.ATTRIBUTES, each)
        scope = Message().text(fields.InstrumentationScope.NAME, "tachograph")
        scope.text(fields.InstrumentationScope.VERSION, __version__)
        profiles = Message().message(fields.ScopeProfiles.SCOPE, scope)
        for profile in _profiles(extract, dictionary, mine, int(number)):
            profiles.message(fields.ScopeProfiles.PROFILES, profile)
        of_process = Message().message(fields.ResourceProfiles.RESOURCE, resource)
        of_process.message(fields.ResourceProfiles.SCOPE_PROFILES, profiles)
        data.message(fields.ProfilesData.RESOURCE_PROFILES, of_process)
    data.message(fields.ProfilesData.DICTIONARY, dictionary.to_message())
    out.write(data.to_bytes())
    return []


def _profiles(extract: Extract, dictionary: Dictionary, sums: pd.DataFrame, process: int) -> Iterator[Message]:
    """A process's profiles, one for each type."""
    first = default_type(extract)
    links = [dictionary.link(*ids) for ids in extract.requests.ids] if extract.requests is not None else []
    for each in sorted(value_types(extract), key=lambda each: each != first):
        profile = Message().message(fields.Profile.SAMPLE_TYPE, _value_type(dictionary, each))
        for sample in _samples(dictionary, sums[["thread", "node", "request", each.name]], links):
            profile.message(fields.Profile.SAMPLES, sample)
        if extract.start_utc_ns is not None:
            profile.fixed64(fields.Profile.TIME_UNIX_NANO, max(0, extract.start_utc_ns))
        if extract.duration_ns is not None:
            profile.number(fields.Profile.DURATION_NANO, extract.duration_ns)
        period = period_of(extract)
        if period is not None:
            profile.message(fields.Profile.PERIOD_TYPE, _value_type(dictionary, period.type))
            profile.number(fields.Profile.PERIOD, period.length)
        yield profile.blob(fields.Profile.PROFILE_ID, _profile_id(extract, process, profile.to_bytes()))


def _value_type(dictionary: Dictionary, each: ValueType) -> Message:
    return dictionary.value_type(_NAMES.get(each.name, each.name), each.unit)


def _samples(dictionary: Dictionary, sums: pd.DataFrame, links: Sequence[int]) -> Iterator[Message]:
    """Samples, one for each stack, thread and link: rows with all in common are one sample (a thread id may recur)."""
    values: dict[tuple[int, tuple[int, ...], int], int] = {}
    for thread, node, request, value in sums.itertuples(index=False):
        if value > 0:
            link = links[request] if request >= 0 else 0
            key = dictionary.stack(int(node)), dictionary.thread(int(thread)), link
            values[key] = values.get(key, 0) + int(value)
    for (stack, attributes, link), value in values.items():
        sample = Message().number(fields.Sample.STACK_INDEX, stack).packed(fields.Sample.ATTRIBUTE_INDICES, attributes)
        if link:
            sample.number(fields.Sample.LINK_INDEX, link)
        yield sample.packed(fields.Sample.VALUES, [value])


def _profile_id(extract: Extract, process: int, profile: bytes) -> bytes:
    """16 bytes, the same for the same part of a recording: a receiver can recognise duplicates."""
    window = extract.window
    parts = f"{extract.recording.manifest.uuid} {process} {window.start_ns} {window.end_ns}".encode()
    chosen = extract.in_scope.tobytes() + extract.included.tobytes()
    return hashlib.sha256(parts + chosen + profile).digest()[:16]

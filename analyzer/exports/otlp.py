"""OpenTelemetry's profiles signal: a protocol buffer ``ProfilesData``, which OTLP sends as it is (``otlp_fields``).

One resource for each process, and in it one profile for each type of values, the one that is shown first before the
others. Sums are those of pprof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pandas as pd

from tachograph import __version__

from . import otlp_fields as fields
from .extract import Extract, Options
from .otlp_attributes import key_values, resources
from .otlp_dictionary import Dictionary
from .protobuf import Message
from .value_types import ValueType, default_type, period_of, value_sums, value_types

_NAMES = {"wait": "off_cpu"}
"""Types that the signal has its own names for."""


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes samples with their lines; threads are attributes of the samples, processes are resources."""
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
    for each in sorted(value_types(extract), key=lambda each: each != first):
        profile = Message().message(fields.Profile.SAMPLE_TYPE, _value_type(dictionary, each))
        for sample in _samples(dictionary, sums[["thread", "node", each.name]]):
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


def _samples(dictionary: Dictionary, sums: pd.DataFrame) -> Iterator[Message]:
    """Samples, one for each stack and thread: what has both in common is one sample (a thread id may come again)."""
    values: dict[tuple[int, tuple[int, ...]], int] = {}
    for thread, node, value in sums.itertuples(index=False):
        if value > 0:
            key = dictionary.stack(int(node)), dictionary.thread(int(thread))
            values[key] = values.get(key, 0) + int(value)
    for (stack, attributes), value in values.items():
        sample = Message().number(fields.Sample.STACK_INDEX, stack)
        yield sample.packed(fields.Sample.ATTRIBUTE_INDICES, attributes).packed(fields.Sample.VALUES, [value])


def _profile_id(extract: Extract, process: int, profile: bytes) -> bytes:
    """16 bytes, the same for the same part of a recording: a receiver that gets it twice can tell."""
    window = extract.window
    parts = f"{extract.recording.manifest.uuid} {process} {window.start_ns} {window.end_ns}".encode()
    chosen = extract.in_scope.tobytes() + extract.included.tobytes()
    return hashlib.sha256(parts + chosen + profile).digest()[:16]

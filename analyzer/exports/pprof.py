"""pprof's format: a gzipped protocol buffer (https://github.com/google/pprof/blob/main/proto/profile.proto).

``call_counts`` is shared with the other formats that can hold numbers of calls.
"""

from __future__ import annotations

import gzip
from typing import BinaryIO

import numpy as np

from ..conclusions.calls.call_estimates import estimate_calls, read_call_facts
from .extract import Extract, Options, Thread
from .frame_tree import FrameTree
from .protobuf import Message
from .value_types import ValueType, default_type, period_of, value_sums, value_types


def call_counts(extract: Extract, tree: FrameTree) -> dict[int, int]:
    """Calls of each function of ``tree``, estimated where it was not watched all the time; functions in scope only.

    Empty where no calls were watched, or of one thread only: they are not known by thread.

    Errors:
        FormatError: the recording is damaged.
    """
    if not extract.all_threads:
        return {}
    facts = read_call_facts(extract.recording, extract.calls, extract.window, extract.processes)
    if facts is None:
        return {}
    # The functions of a tree begin with those of its call tree.
    estimates = estimate_calls(facts)
    estimate = np.where(np.isnan(estimates.calls), estimates.low, estimates.calls)
    calls = np.bincount(facts.function, estimate, len(tree.functions))
    return {number: round(calls[number]) for number in frames_of_functions(tree) if calls[number] >= 0.5}


def frames_of_functions(tree: FrameTree) -> dict[int, int]:
    """The frame without a line of each function, where there is one: it stands for all of the function's calls."""
    return {frame.function: number for number, frame in enumerate(tree.frames) if frame.line is None}


# Field numbers of profile.proto.
_PROFILE = {
    "sample_type": 1, "sample": 2, "mapping": 3, "location": 4, "function": 5, "string_table": 6, "time_nanos": 9,
    "duration_nanos": 10, "period_type": 11, "period": 12, "comment": 13, "default_sample_type": 14,
}  # fmt: skip
_PYTHON, _FIRST_MODULE = 1, 2
"""Ids of mappings: one stands for all Python code, then one for each module of native functions."""


class _Strings:
    """The string table; its first entry is the empty string."""

    def __init__(self) -> None:
        self.values = [""]
        self._numbers = {"": 0}

    def add(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.values))
        if number == len(self.values):
            self.values.append(text)
        return number


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes samples with their lines; threads and processes are labels of the samples.

    A heap has the four types of Go's. Where calls were watched each function has one more sample, of its number of
    calls, without callers.
    """
    tree, strings = extract.tree(lines=True, native=options.native), _Strings()
    profile = Message()
    calls = {} if extract.heap else call_counts(extract, tree)
    types = value_types(extract)
    of_calls = [ValueType("calls", "count")] if calls else []
    no_calls = [0] * len(of_calls)
    for each in (*types, *of_calls):
        profile.message(_PROFILE["sample_type"], _value_type(strings, each))
    sums = value_sums(extract, tree)
    labels = [_labels(strings, thread) for thread in extract.threads]
    stacks = {node: _stack(tree, node) for node in sums["node"].unique().tolist()}
    columns = (sums[name].tolist() for name in ("thread", "node", *(each.name for each in types)))
    for thread, node, *values in zip(*columns, strict=True):
        packed = Message().packed(2, [*values, *no_calls]).to_bytes()
        profile.blob(_PROFILE["sample"], stacks[node] + packed + labels[thread])
    frames = frames_of_functions(tree)
    for called, count in calls.items():
        sample = Message().packed(1, [frames[called] + 1]).packed(2, [*(0 for _ in types), count])
        profile.message(_PROFILE["sample"], sample)
    modules = _modules(tree)
    _add_code(profile, tree, strings, modules)
    if extract.start_utc_ns is not None:
        profile.number(_PROFILE["time_nanos"], extract.start_utc_ns)
    if extract.duration_ns is not None:
        profile.number(_PROFILE["duration_nanos"], extract.duration_ns)
    period = period_of(extract)
    if period is not None:
        profile.message(_PROFILE["period_type"], _value_type(strings, period.type))
        profile.number(_PROFILE["period"], period.length)
    profile.packed(_PROFILE["comment"], [strings.add(f"{extract.program}: {extract.doc}, by tachograph")])
    profile.number(_PROFILE["default_sample_type"], strings.add(default_type(extract).name))
    for text in strings.values:
        profile.text(_PROFILE["string_table"], text)
    out.write(gzip.compress(profile.to_bytes(), 6, mtime=0))
    return []


def _value_type(strings: _Strings, each: ValueType) -> Message:
    return Message().number(1, strings.add(each.name)).number(2, strings.add(each.unit))


def _stack(tree: FrameTree, node: int) -> bytes:
    """The locations of a sample, the innermost first."""
    return Message().packed(1, [frame + 1 for frame in reversed(tree.path(node))]).to_bytes()


def _labels(strings: _Strings, thread: Thread) -> bytes:
    """The labels of a thread's samples."""
    labels = Message()
    for name, text in (("thread", thread.name), ("process", thread.process_name)):
        labels.message(3, Message().number(1, strings.add(name)).number(2, strings.add(text)))
    for key, number in (("tid", thread.tid), ("pid", thread.pid)):
        if number is not None:
            labels.message(3, Message().number(1, strings.add(key)).number(3, number))
    return labels.to_bytes()


def _modules(tree: FrameTree) -> dict[str, int]:
    paths = dict.fromkeys(each.module for each in tree.functions if each.module is not None)
    return {path: _FIRST_MODULE + number for number, path in enumerate(paths)}


def _add_code(profile: Message, tree: FrameTree, strings: _Strings, modules: dict[str, int]) -> None:
    """Mappings, locations (one for each frame) and functions; ids are numbers from 1."""
    for mapping, path in ((_PYTHON, "Python"), *((number, path) for path, number in modules.items())):
        entry = Message().number(1, mapping).number(5, strings.add(path))
        for flag in (7, 8, 9) if mapping == _PYTHON else (7,):  # has functions, file names, line numbers
            entry.number(flag, 1)
        profile.message(_PROFILE["mapping"], entry)
    for number, frame in enumerate(tree.frames):
        function = tree.functions[frame.function]
        line = Message().number(1, frame.function + 1)
        if frame.line is not None:
            line.number(2, frame.line)
        mapping = _PYTHON if function.module is None else modules[function.module]
        profile.message(_PROFILE["location"], Message().number(1, number + 1).number(2, mapping).message(4, line))
    used = {frame.function for frame in tree.frames}
    for number in sorted(used):
        function = tree.functions[number]
        name = strings.add(function.name)
        message = Message().number(1, number + 1).number(2, name).number(3, name)
        if function.file is not None:
            message.number(4, strings.add(function.file))
        if function.first_line is not None:
            message.number(5, function.first_line)
        profile.message(_PROFILE["function"], message)

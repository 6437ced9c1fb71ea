"""Perfetto's files, read by the protocol buffers that Perfetto publishes (its trace processor is no package)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export


class Trace:
    """A parsed trace with its interned data."""

    def __init__(self, data: bytes) -> None:
        trace: Any = perfetto_trace_pb2.Trace()
        trace.ParseFromString(data)
        self.packets = trace.packet
        interned = [packet.interned_data for packet in self.packets if packet.HasField("interned_data")]
        names = {each.iid: each.str.decode() for data in interned for each in data.function_names}
        frames = {each.iid: names[each.function_name_id] for data in interned for each in data.frames}
        self.stacks = {
            each.iid: [frames[frame] for frame in each.frame_ids] for data in interned for each in data.callstacks
        }
        self.tracks = {
            packet.track_descriptor.uuid: packet.track_descriptor
            for packet in self.packets
            if packet.HasField("track_descriptor")
        }


def test_cpu_samples(export: Export) -> None:
    trace = Trace(export("perfetto"))
    samples = [packet for packet in trace.packets if packet.HasField("perf_sample")]
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    before = 0
    for packet in samples:
        weight, before = packet.perf_sample.timebase_count - before, packet.perf_sample.timebase_count
        stack = trace.stacks[packet.perf_sample.callstack_iid]
        own[stack[-1]] += weight
        for name in set(stack):
            total[name] += weight
    assert (own, total) == (program.CPU.own, program.CPU.total)
    # Samples are 10 ms apart; the first three are of one function.
    times = [(packet.timestamp - program.START) // program.MS for packet in samples]
    assert times == [0, 30, 40, 50, 60, 70]
    assert {packet.perf_sample.tid for packet in samples} == {100, 101}


def test_waits_are_slices(export: Export) -> None:
    trace = Trace(export("perfetto", "wait"))
    begun: dict[int, tuple[int, str]] = {}
    slices = []
    for packet in trace.packets:
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            begun[event.track_uuid] = (packet.timestamp, event.name)
            assert trace.stacks[event.callstack_iid][-1] == event.name
        elif event.type == event.TYPE_SLICE_END:
            start, name = begun.pop(event.track_uuid)
            thread = trace.tracks[event.track_uuid].thread
            slices.append((thread.thread_name, name, (packet.timestamp - start) // program.MS))
    assert begun == {}
    assert slices == [("MainThread", "work", 40), ("pool-1", "<module>", 100)]


@pytest.mark.parametrize(("metric", "truth"), program.SIZES)
def test_bytes_are_dumps_of_a_heap(export: Export, metric: str, truth: program.Truth) -> None:
    trace = Trace(export("perfetto", metric))
    (packet,) = [packet for packet in trace.packets if packet.HasField("profile_packet")]
    (dump,) = packet.profile_packet.process_dumps
    assert dump.pid == 100
    own: Counter[str] = Counter()
    for sample in dump.samples:
        own[trace.stacks[sample.callstack_id][-1]] += sample.self_allocated
    assert own == truth.own


def test_the_footprint_is_a_counter(export: Export) -> None:
    trace = Trace(export("perfetto"))
    counted = [
        (trace.tracks[packet.track_event.track_uuid].name, packet.track_event.counter_value)
        for packet in trace.packets
        if packet.track_event.type == packet.track_event.TYPE_COUNTER
    ]
    assert counted == [("footprint", 0), ("footprint", 3000), ("footprint", 1000)]


@pytest.mark.parametrize("metric", ["cpu", "wait", "live"])
def test_every_field_is_one_that_the_format_has(export: Export, metric: str) -> None:
    from google.protobuf import unknown_fields

    def check(message: Any) -> None:
        assert list(unknown_fields.UnknownFieldSet(message)) == []
        for field, value in message.ListFields():
            if field.message_type is not None:
                for each in value if field.is_repeated else [value]:
                    check(each)

    trace: Any = perfetto_trace_pb2.Trace()
    trace.ParseFromString(export("perfetto", metric, native=True))
    check(trace)
    assert [packet.sequence_flags for packet in trace.packet][:2] == [1, 2]


def test_clocks_and_threads(export: Export) -> None:
    trace = Trace(export("perfetto"))
    (snapshot,) = [packet.clock_snapshot for packet in trace.packets if packet.HasField("clock_snapshot")]
    assert {clock.clock_id: clock.timestamp for clock in snapshot.clocks} == {
        perfetto_trace_pb2.BUILTIN_CLOCK_MONOTONIC: program.START,
        perfetto_trace_pb2.BUILTIN_CLOCK_REALTIME: 1_700_000_000_000_000_000,
    }
    threads = [track for track in trace.tracks.values() if track.HasField("thread")]
    assert [(track.thread.pid, track.thread.tid, track.thread.thread_name) for track in threads] == [
        (100, 100, "MainThread"),
        (100, 101, "pool-1"),
    ]
    assert all(trace.tracks[track.parent_uuid].process.pid == 100 for track in threads)

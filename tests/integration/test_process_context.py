"""What a program publishes of itself by OpenTelemetry's process context is in the recording, process by process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

PUBLISHER = '''
"""Publishes a process context as the standard (OTEP 4719) has it, and updates it."""

import ctypes
import os
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
PR_SET_VMA, NAME, DONTFORK, SIZE = 0x53564D41, 0, 10, 4096
payloads = []


def field(number, value):
    return bytes((number << 3 | 2, len(value))) + value


def payload(service):
    name = field(1, field(1, b"service.name") + field(2, field(1, service.encode())))
    command = field(1, field(1, b"process.command_args") + field(2, field(1, b"--password=hidden")))
    return field(1, name + command)


def publish(how, service):
    fd = os.memfd_create("OTEL_CTX", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING) if how == "memfd" else -1
    if fd >= 0:
        os.ftruncate(fd, SIZE)
    at = libc.mmap(None, SIZE, 3, 2 if fd >= 0 else 0x22, fd, 0)
    if fd >= 0:
        os.close(fd)
    libc.madvise(at, SIZE, DONTFORK)
    ctypes.memmove(at, b"OTEL_CTX" + struct.pack("<I", 2), 12)
    update(at, service)
    text = ctypes.create_string_buffer(b"OTEL_CTX")
    payloads.append(text)
    named = libc.prctl(PR_SET_VMA, NAME, at, SIZE, ctypes.addressof(text)) == 0
    return at, named or fd >= 0


def update(at, service, address=None):
    stamp = ctypes.c_uint64.from_address(at + 16)
    stamp.value = 0
    buffer = ctypes.create_string_buffer(payload(service))
    payloads.append(buffer)
    ctypes.memmove(at + 12, struct.pack("<I", len(buffer) - 1), 4)
    ctypes.memmove(at + 24, struct.pack("<Q", address or ctypes.addressof(buffer)), 8)
    stamp.value = time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))


at, readable = publish(sys.argv[1], "first")
if not readable:
    sys.exit(77)
work(1.0)
if sys.argv[2] == "updated":
    update(at, "second")
elif sys.argv[2] == "unmapped":
    update(at, "second", address=8)
elif sys.argv[2] == "forked":
    child = os.fork()
    if child == 0:
        work(1.0)
        sys.exit()
    os.waitpid(child, 0)
work(0.1)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
'''


def recorded(tmp_path: Path, how: str, what: str) -> list[dict[str, Any]]:
    program = tmp_path / "publish.py"
    program.write_text(PUBLISHER)
    if support.record([str(program), how, what], tmp_path).status == 77:
        pytest.skip("neither memfd nor names of anonymous mappings here")
    return support.rows(tmp_path / "run.tacho", "processes")


@pytest.mark.parametrize("how", ["memfd", "anonymous"])
def test_what_is_published_is_recorded(tmp_path: Path, how: str) -> None:
    (process,) = recorded(tmp_path, how, "once")
    assert json.loads(process["resource"]) == {"service.name": "first"}
    exported = tmp_path / "run.otlp"
    support.tachograph("export", "otlp", "run.tacho", "-o", exported, cwd=tmp_path)
    assert b"first" in exported.read_bytes()
    assert b"hidden" not in exported.read_bytes()
    (row,) = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["processes"]
    assert row["service"] == "first"


def test_the_last_one_holds(tmp_path: Path) -> None:
    """The update comes a tenth of a second before the end."""
    (process,) = recorded(tmp_path, "memfd", "updated")
    assert json.loads(process["resource"]) == {"service.name": "second"}


def test_a_killed_process_has_it(tmp_path: Path) -> None:
    (process,) = recorded(tmp_path, "memfd", "killed")
    assert json.loads(process["resource"]) == {"service.name": "first"}


def test_a_forked_child_has_none_of_its_parents(tmp_path: Path) -> None:
    parent, child = recorded(tmp_path, "memfd", "forked")
    assert json.loads(parent["resource"]) == {"service.name": "first"}
    assert child["resource"] is None


def test_a_payload_that_is_not_there_harms_nothing(tmp_path: Path) -> None:
    (process,) = recorded(tmp_path, "memfd", "unmapped")
    assert process["exit_status"] == 0
    assert json.loads(process["resource"]) == {"service.name": "first"}

"""The manifest with which a recording begins."""

from __future__ import annotations

import os
import time

from tachograph import __version__
from tachograph.format.manifest import Manifest
from tachograph.recorder import clock
from tachograph.recorder.command.option_values import RATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.recorder.command.options import Options


def new_manifest(parameters: dict[str, Any]) -> Manifest:
    """The manifest of a recording that begins on this machine now; its argv is still missing."""
    system = os.uname()
    return Manifest(
        uuid=random_uuid(),
        state="recording",
        created_utc=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
        tachograph_version=__version__,
        host=system.nodename,
        os=f"{system.sysname} {system.release}",
        machine=system.machine,
        cpu_count=usable_cpus(),
        clock={"monotonic_ns": clock.monotonic_ns(), "utc_ns": clock.utc_ns()},
        parameters=parameters,
    )


def manifest_parameters(options: Options, segment_size: int) -> dict[str, Any]:
    """The manifest's parameters: what the options say, and what follows from the sampler."""
    values = options.as_settings("manifest")
    native = options.sampler == "native"
    return {
        **values,
        "waits": native,
        **({"schedule": "stationary"} if native else {}),
        **({**RATES, "touched": True} if values["memory"] else {}),
        "segment_size": segment_size,
        **({} if (limit := memory_limit()) is None else {"memory_limit_bytes": limit}),
    }


def memory_limit() -> int | None:
    """The least memory limit of the control groups that this process is in; None without one, or if it is unknown."""
    limits = []
    for folder, path, first_version in _memory_groups():
        name = "memory.limit_in_bytes" if first_version else "memory.max"
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts) + 1):
            limit = _limit_in("/".join([folder, *parts[:depth], name]))
            if limit is not None:
                limits.append(limit)
    return min(limits, default=None)


def oom_kills() -> int | None:
    """Processes of this one's control group that were killed for want of memory so far; None if it is unknown."""
    for folder, path, first_version in _memory_groups():
        name = "memory.oom_control" if first_version else "memory.events"
        # In a container the path is the host's, and the group lies at the root of what is mounted.
        for group in (f"{folder}/{path.strip('/')}", folder):
            try:
                with open(f"{group}/{name}", encoding="ascii") as file:
                    counts = dict(line.split() for line in file)
                return int(counts["oom_kill"])
            except (OSError, ValueError, KeyError):  # not there, or a kernel that does not count them
                continue
    return None


def _memory_groups() -> list[tuple[str, str, bool]]:
    """The control groups of this process that may limit memory: where they are mounted, path, first version or not."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    return [
        ("/sys/fs/cgroup/memory", path, True) if controllers else ("/sys/fs/cgroup", path, False)
        for _, controllers, path in (group for group in groups if len(group) == 3)
        if not controllers or "memory" in controllers.split(",")
    ]


def _limit_in(path: str) -> int | None:
    """The number of bytes in a file of a control group; None without a limit."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(64).strip()
    except OSError:
        return None
    # The first version has a number larger than any memory where there is no limit.
    return int(text) if text.isascii() and text.isdecimal() and int(text) < 1 << 60 else None


def random_uuid() -> str:
    """A random UUID (RFC 9562, version 4). To import the module ``uuid`` would keep the program waiting."""
    bits = int.from_bytes(os.urandom(16), "big")
    bits = bits & ~(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62
    text = f"{bits:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def usable_cpus() -> int | None:
    """The number of CPUs that this process and the program can use; None where a sandbox does not let it ask."""
    try:
        return len(os.sched_getaffinity(0))
    except OSError:
        return None

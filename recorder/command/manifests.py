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
    }


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

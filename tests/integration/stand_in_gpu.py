"""A GPU that is not there: the stand-in for NVIDIA's library, and the file that says what its GPU does."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from integration.support import compile_library, environment

SOURCE = Path(__file__).parent / "native" / "nvml_stand_in.c"
LIBRARY = "libnvidia-ml.so.1"
SOUND, NO_SAMPLES, NO_BUSY, NO_DRIVER, HANGS, LOSES_GPU, JUNK, OLD, HANGS_AT_START, NO_PROCESSES = range(10)
HEAD, USER, USERS = struct.Struct("<II"), struct.Struct("<iIQ"), 4
GIB = 1 << 30


def build(folder: Path) -> Path | None:
    """The folder that holds the library; None without a C compiler."""
    built = compile_library(SOURCE, folder)
    if built is None:
        return None
    shutil.move(built, folder / LIBRARY)
    return folder


class StandIn:
    """One machine with GPUs, of which something may be wrong."""

    def __init__(self, library: Path, state: Path, kind: int = SOUND, devices: int = 1) -> None:
        state.write_bytes(HEAD.pack(kind, devices) + bytes(USERS * USER.size))
        self.environment = environment(LD_LIBRARY_PATH=str(library), STAND_IN_GPU=str(state))

"""Checks if this interpreter can be recorded on this machine, and says why not."""

from __future__ import annotations

import os
import sys
from _imp import extension_suffixes  # what importlib.machinery passes on, without its module

import tachograph.recorder
from tachograph.recorder.collect.unrecorded_pythons import NEWEST, OLDEST
from tachograph.recorder.problems import Refused

_NOT_IN_PRELOAD = frozenset(" :$\t\n")
"""Characters that divide LD_PRELOAD, or that the dynamic loader expands in it; there is no way to quote them."""


def check_support(sampler: str, *, redundancy: bool = False) -> None:
    """Refuse in one line if ``sampler`` (native or signal) cannot record here; name the other if that one could.

    Repeated work is seen by an x86-64 processor's watchpoints and decoded instructions alone.
    """
    why_not = why_no_recording()
    if why_not is not None:
        raise Refused(f"cannot record here: {why_not}; 'tachograph analyze' works here on recordings made elsewhere")
    if not is_installed("pyarrow"):
        raise Refused("recording needs pyarrow, which is not installed here; install it with: pip install pyarrow")
    if sampler == "native":
        why_not = why_not_native()
        if why_not is not None:
            raise Refused(f"the native sampler cannot record here: {why_not}; --sampler signal can")
        if redundancy and os.uname().machine != "x86_64":
            raise Refused(f"--redundancy needs an x86-64 processor, this is {os.uname().machine}: leave it out")


def why_no_recording() -> str | None:
    """Why no sampler at all works here, or None."""
    if not sys.platform.startswith("linux"):
        return f"recording needs Linux, this is {sys.platform}"
    if sys.implementation.name != "cpython":
        return f"recording needs CPython, this is {sys.implementation.name}"
    return None


def why_not_native(*, preloaded: bool = True) -> str | None:
    """Why the native sampler does not work here, or None; ``preloaded``: its library is to be loaded by LD_PRELOAD."""
    version = sys.version_info[:2]
    if not OLDEST <= version <= NEWEST:
        supported = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
        return f"it knows CPython {supported}, this is {version[0]}.{version[1]}"
    if "t" in sys.abiflags:
        return "this is a free-threaded Python"
    machine = os.uname().machine
    if machine not in {"x86_64", "aarch64"}:
        return f"it needs an x86-64 or aarch64 processor, this is {machine}"
    if not _has_glibc():
        return "it needs the C library glibc"
    library = preload_library()
    if library is None or not any(native_part(f"_native{suffix}") for suffix in extension_suffixes()):
        return "tachograph was installed without its native parts"
    if preloaded and not _NOT_IN_PRELOAD.isdisjoint(library):
        # A link elsewhere would have to stay for as long as any descendant of any program lives.
        what = "the loader takes no library whose path has a blank, a colon or a dollar sign"
        return f"it is installed in {os.path.dirname(library)}, and {what} (install it elsewhere)"
    return None


def preload_library(*, allocations: bool = True) -> str | None:
    """The library that the program is started with, if it was built; one of them sees no ``allocations``."""
    return native_part("libtachograph.so" if allocations else "libtachograph-cpu.so")


def native_part(name: str) -> str | None:
    """Where a built file of this package lies; in an editable install that is not beside the sources."""
    candidates = (os.path.join(folder, name) for folder in tachograph.recorder.__path__)
    return next(filter(os.path.exists, candidates), None)


def is_installed(module: str) -> bool:
    """True if there is a module of this name, which is not imported; nor is importlib.util."""
    return module in sys.modules or any(finder.find_spec(module, None) for finder in sys.meta_path)


def _has_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False

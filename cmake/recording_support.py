"""Prints why recording is not supported by the interpreter that runs this, or nothing if it is.

Run by CMake when the package is built. Standard library only, and any Python 3: it must be able to say no politely.
"""

import os
import platform
import re
import struct
import sys
import sysconfig


def supported() -> "list[tuple[int, int]]":
    """The oldest and the newest CPython that can be recorded, as defined in recorder/collect/unrecorded_pythons.py."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(root, "recorder", "collect", "unrecorded_pythons.py"), encoding="utf-8") as file:
        found = re.search(r"^OLDEST, NEWEST = \((\d+), (\d+)\), \((\d+), (\d+)\)$", file.read(), re.MULTILINE)
    if found is None:
        raise ValueError("recorder/collect/unrecorded_pythons.py does not say which versions are supported")
    first, second, third, fourth = map(int, found.groups())
    return [(first, second), (third, fourth)]


def reason() -> str:
    """One clause of text, without a full stop; empty if recording is supported."""
    version = ".".join(map(str, sys.version_info[:2]))
    if platform.system() != "Linux":
        return f"recording needs Linux, this is {platform.system()}"
    if platform.machine() not in ("x86_64", "AMD64", "aarch64", "arm64") or struct.calcsize("P") != 8:
        return f"recording needs an x86-64 or aarch64 processor and a 64-bit Python, this is {platform.machine()}"
    if platform.python_implementation() != "CPython":
        return f"recording needs CPython, this is {platform.python_implementation()}"
    oldest, newest = supported()
    if not oldest <= sys.version_info[:2] <= newest:
        return f"recording needs CPython {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}, this is {version}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return f"recording needs a CPython with the GIL, this is a free-threaded {version}"
    # Statically linked interpreters (no libc found) cannot be preloaded into either.
    if platform.libc_ver()[0] != "glibc":
        return f"recording needs glibc, this Python stands on {platform.libc_ver()[0] or 'another C library'}"
    return ""


if __name__ == "__main__":
    print(reason())

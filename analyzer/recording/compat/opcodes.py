"""Which opcodes are calls, and which are the interpreter's own work, per CPython version.

The facts are in ``opcodes.json``, made by ``generate.py``.
"""

from __future__ import annotations

import enum
import json
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray


class OpcodeClass(enum.IntEnum):
    """What an opcode at the leaf of a stack tells about the code that runs there."""

    UNKNOWN = 0
    """No opcode was recorded, or the interpreter's version is not known."""
    INTERNAL = 1
    """The interpreter's own work, which never runs foreign code: moving values about, calling Python functions."""
    OTHER = 2
    """Not a call, but it may run foreign code: an operator of an array type, an attribute with a getter in C."""
    ANY_CALL = 3
    """A call that has not been specialised: the callee may be Python's own call machinery or a C function."""
    NATIVE_CALL = 4
    """A call that was specialised for a callable written in C."""


@lru_cache(maxsize=1)
def versions() -> dict[str, dict[str, dict[str, int]]]:
    """Opcode numbers by version ("3.13"), class ("native_call", "internal", "any_call") and name."""
    text = resources.files(__package__).joinpath("opcodes.json").read_text("utf-8")
    loaded: dict[str, dict[str, dict[str, int]]] = json.loads(text)
    return loaded


def classes_of(python_version: str | None) -> NDArray[np.uint8]:
    """The class of each opcode 0..255 in one version ("3.13.0"); all unknown for a version that is not in the file."""
    minor = ".".join((python_version or "").split(".")[:2])
    known = versions().get(minor)
    if known is None:
        return np.full(256, OpcodeClass.UNKNOWN, np.uint8)
    classes = np.full(256, OpcodeClass.OTHER, np.uint8)
    classes[list(known["internal"].values())] = OpcodeClass.INTERNAL
    classes[list(known["any_call"].values())] = OpcodeClass.ANY_CALL
    classes[list(known["native_call"].values())] = OpcodeClass.NATIVE_CALL
    # CACHE: no instruction runs. On 3.11 and 3.12 the interpreter is on its way back from a call of a Python function.
    classes[0] = OpcodeClass.INTERNAL
    return classes

"""Makes ``format-spec/opcodes.json`` from CPython's own headers.

Run it with one header for each version (``opcode.h`` up to 3.12, ``opcode_ids.h`` from 3.13 on), the version in front::

    python tools/opcode_classes.py 3.13=/usr/include/python3.13/opcode_ids.h ... > opcodes.json

Versions that are not named keep what the present file says about them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PRESENT = Path(__file__).resolve().parents[1] / "format-spec" / "opcodes.json"

DEFINE = re.compile(r"^#define\s+([A-Z][A-Z0-9_]+)\s+(\d+)\s*$", re.MULTILINE)

# Specialised for a callable that is written in C: whatever runs outside the evaluation loop meanwhile is that callable.
NATIVE_CALL = re.compile(r"(PRE)?CALL_(NO_KW_)?(BUILTIN_\w+|METHOD_DESCRIPTOR_\w+|STR_1|TUPLE_1)")
# Calls whose callee is not told by the opcode. PRECALL is the first half of a call in 3.11 and runs C callees itself.
ANY_CALL = re.compile(
    r"(INSTRUMENTED_)?(CALL|CALL_KW|CALL_FUNCTION_EX)|CALL_ADAPTIVE|PRECALL(_ADAPTIVE)?|CALL_(KW_|EX_)?NON_PY(_GENERAL)?"
)
# These never run foreign code but for destroying objects: they move values about, or were specialised for built-in
# types.
INTERNAL = re.compile(
    r"(INSTRUMENTED_)?("
    r"LIST_APPEND|SET_ADD|MAP_ADD|BUILD_\w+|LIST_TO_TUPLE|MAKE_\w+|COPY\w*|SWAP|NOP|EXTENDED_ARG|PUSH_\w+|NOT_TAKEN"
    r"|LOAD_(FAST|CONST|DEREF|CLOSURE|CLASSDEREF|GLOBAL|SMALL_INT|COMMON_CONSTANT|ASSERTION_ERROR|BUILD_CLASS)\w*"
    r"|LOAD_(ATTR|METHOD)_(CLASS|INSTANCE_VALUE|MODULE|SLOT|WITH_HINT|WITH_VALUES|NO_DICT|LAZY_DICT|METHOD_\w+|NONDESC\w+)"
    r"|STORE_(FAST|DEREF|GLOBAL|NAME)\w*|STORE_ATTR_(INSTANCE_VALUE|SLOT|WITH_HINT)|STORE_SUBSCR_(DICT|LIST_INT)"
    r"|DELETE_(FAST|DEREF)|POP_\w+|END_\w+|RESUME\w*|JUMP\w*|RETURN_\w+|YIELD_VALUE|SEND_GEN|IS_OP"
    r"|FOR_ITER_(LIST|TUPLE|RANGE|GEN)|UNPACK_SEQUENCE_(LIST|TUPLE|TWO_TUPLE)|TO_BOOL_\w+|CONTAINS_OP_(DICT|SET)|COMPARE_OP_(INT|FLOAT|STR)\w*"
    r"|BINARY_OP_(INPLACE_)?(ADD|SUBTRACT|MULTIPLY)_(INT|FLOAT|UNICODE)|BINARY_OP_SUBSCR_\w+|BINARY_SUBSCR_(DICT|LIST|TUPLE|STR)_\w+"
    r"|BINARY_SUBSCR_DICT"
    r"|(PRE)?CALL_(PY|PYFUNC|BOUND_METHOD|ALLOC_AND_ENTER_INIT|KW_PY|KW_BOUND_METHOD|EX_PY|ISINSTANCE|LIST_APPEND|TYPE_1)\w*"
    r"|PRECALL_NO_KW_(ISINSTANCE|LIST_APPEND|TYPE_1)|CALL_NO_KW_(ISINSTANCE|LIST_APPEND|TYPE_1)"
    r"|INTERPRETER_EXIT|EXIT_INIT_CHECK|COPY_FREE_VARS"
    r")"
)
# What is left of those named CALL is done by the evaluation loop itself (len), and may call a method that is written
# in C.


def classify(header: str) -> dict[str, dict[str, int]]:
    """The opcodes of one header that are calls, by class, in the order of their numbers."""
    opcodes = {name: int(number) for name, number in DEFINE.findall(header) if int(number) < 256}
    ordered = sorted(opcodes.items(), key=lambda item: item[1])
    return {
        "native_call": {name: number for name, number in ordered if NATIVE_CALL.fullmatch(name)},
        "internal": {name: number for name, number in ordered if INTERNAL.fullmatch(name)},
        "any_call": {name: number for name, number in ordered if ANY_CALL.fullmatch(name)},
    }


def main(arguments: list[str]) -> str:
    """The text of ``opcodes.json`` with the versions in ``arguments`` (``VERSION=HEADER``) made anew."""
    versions = json.loads(PRESENT.read_text("utf-8"))
    for argument in arguments:
        version, _, header = argument.partition("=")
        versions[version] = classify(Path(header).read_text("utf-8"))
    ordered = sorted(versions.items(), key=lambda item: tuple(map(int, item[0].split("."))))
    return json.dumps(dict(ordered), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))

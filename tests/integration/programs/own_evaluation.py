"""A program with a function that evaluates frames, as torch.compile has; here it is the interpreter's, by another name.

Says whether it is still there at the end, and what a function returned.
"""

import ctypes
import json
import time
from collections.abc import Callable
from typing import Any

api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
get, put = api._PyInterpreterState_GetEvalFrameFunc, api._PyInterpreterState_SetEvalFrameFunc
get.argtypes, get.restype = [ctypes.c_void_p], ctypes.c_void_p
put.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
default = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
assert default is not None
# A jump to the interpreter's function.
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
place = library.mmap(None, 4096, 7, 0x22, -1, 0)
code = b"\x48\xb8" + default.to_bytes(8, "little") + b"\xff\xe0"
ctypes.memmove(place, code, len(code))
interpreter = api.PyInterpreterState_Get()


def answer() -> int:
    return 42


def called(function: Callable[[], Any], seconds: float) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = function()
    return found


put(interpreter, place)
result = called(answer, 1.0)
is_own = get(interpreter) == place
put(interpreter, default)
print(json.dumps({"is_own": is_own, "result": result}))

"""Keeps a pointer with one code object, and says for which its free function was called."""

import ctypes
import json
import sys

api = ctypes.pythonapi
names = ("PyUnstable_Eval_RequestCodeExtraIndex", "PyUnstable_Code_SetExtra")
if sys.version_info < (3, 12):
    names = ("_PyEval_RequestCodeExtraIndex", "_PyCode_SetExtra")
request, put = (getattr(api, name) for name in names)
freed: list[int | None] = []
free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(freed.append)
request.argtypes, request.restype = [type(free)], ctypes.c_ssize_t
put.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p]
index = request(free)


def made(number: int) -> object:
    names: dict[str, object] = {}
    exec(f"def called():\n    return {number}", names)
    return names["called"]


for number in range(2000):
    function = made(number)
    if number == 1000:
        put(function.__code__, index, 100)  # type: ignore[attr-defined]
    function()  # type: ignore[operator]
del function
print(json.dumps({"freed": freed}))

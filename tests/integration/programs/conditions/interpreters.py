"""Interpreters within the interpreter, with a GIL of their own where there is such a thing, all of them at work."""

import importlib
import threading
from typing import Any

interpreters: Any
try:
    interpreters = importlib.import_module("_xxsubinterpreters")
except ImportError:
    interpreters = importlib.import_module("_interpreters")

CODE = """
import time
def inner(n):
    return sum(range(n))
end = time.thread_time() + 0.15
while time.thread_time() < end:
    inner(300)
"""
run = getattr(interpreters, "run_string", None) or interpreters.exec


def work(number: int) -> None:
    other = interpreters.create()
    run(other, CODE)
    interpreters.destroy(other)


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
work(9)
print(len(interpreters.list_all()))

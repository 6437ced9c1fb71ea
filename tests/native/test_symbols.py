"""Names of native functions are read from files that others may change meanwhile."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tachograph.recorder._native")

RESOLVE = """
import os, shutil, sys, threading
from tachograph.recorder import _native
library, copy = _native.__file__, sys.argv[1]
whole = open(library, "rb").read()
offsets = list(range(0, len(whole), 256))
open(copy, "wb").write(whole)
right = _native.resolve(copy, "", offsets)
assert len({name for name, _, _ in right if name}) > 10
done = threading.Event()
def change():
    with open(copy, "r+b", buffering=0) as file:
        while not done.is_set():
            file.truncate(4096)
            os.pwrite(file.fileno(), whole, 0)
changing = threading.Thread(target=change)
changing.start()
for _ in range(50):
    names = _native.resolve(copy, "", offsets)
    assert len(names) == len(offsets)
done.set()
changing.join()
os.truncate(copy, 200)
assert {name for name, _, start in _native.resolve(copy, "", offsets)} == {None}
open(copy, "wb").write(whole)
assert _native.resolve(copy, "", offsets) == right
"""


def test_a_file_that_is_truncated_meanwhile(tmp_path: Path) -> None:
    """It was a SIGBUS of the recording command, at the end of the run."""
    command = [sys.executable, "-c", RESOLVE, str(tmp_path / "library.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")

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


SOURCE = """
int twice(int value);
__attribute__((visibility("hidden"))) void of_name(void) __asm__("{name}");
void of_name(void) {{}}
void* place(void) {{ return (void*)of_name; }}
int calls(int value) {{ return twice(value) + 1; }}
"""


def growing_name(steps: int) -> str:
    """A mangled name of which each step doubles the readable form: S(n) is a template of twice S(n - 1)."""

    def back(number: int) -> str:
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        return f"S{digits[number - 1] if number else ''}_"

    # Each new template is two candidates for substitution, its name and itself.
    arguments = "".join(f"1{chr(97 + step)}I{back(2 * step - 1) * 2 if step else 'ii'}E" for step in range(steps))
    return f"_Z1f{arguments}"


def built(folder: Path, name: str) -> Path:
    """A library with a function of that name."""
    source, library = folder / "named.c", folder / "named.so"
    source.write_text(SOURCE.format(name=name))
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def resolved(library: Path, offsets: list[int]) -> list[str | None]:
    from tachograph.recorder import _native

    return [name for name, _, _ in _native.resolve(str(library), "", offsets)]


def test_a_name_that_grows_is_readable_within_bounds(tmp_path: Path) -> None:
    """Thirty steps would be 8 GB of text."""
    symbols = {}
    for name in (growing_name(3), growing_name(17)):
        library = built(tmp_path, name)
        listing = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
        (address,) = [int(line.split()[0], 16) for line in listing.splitlines() if line.endswith(name)]
        symbols[name] = resolved(library, [address])[0]
    assert (symbols[growing_name(3)] or "").startswith("f(a<int, int>, b<a<int, int>, a<int, int> >")
    assert symbols[growing_name(17)] == growing_name(17)


def test_stubs_of_calls_have_no_name_of_a_function(tmp_path: Path) -> None:
    """They lie behind ``_init``, which has no size."""
    library = built(tmp_path, "plain")
    sections = subprocess.run(["readelf", "-SW", library], check=True, capture_output=True, text=True).stdout
    rows = [line.replace("[ ", "[").split() for line in sections.splitlines() if "] ." in line]
    offsets = {row[1]: int(row[4], 16) for row in rows}
    assert resolved(library, [offsets[".plt"], offsets[".plt"] + 16, offsets[".init"]]) == [None, None, "_init"]

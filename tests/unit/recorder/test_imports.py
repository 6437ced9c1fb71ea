"""What is imported before the program runs, or is recorded: it waits for that."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

SLOW = {"typing", "pathlib", "re", "enum", "json", "signal", "contextlib", "functools", "collections", "dataclasses"}
"""Modules of the standard library that take a millisecond or more."""

OWN_FOLDERS = ("recorder", "format", "analyzer", "__pycache__")

COMMAND = """
from tachograph import project
from tachograph.recorder.collect import output
from tachograph.recorder.command import command_line, launch, manifests, record
from tachograph.recorder.fd_broker import socket_name
line = command_line.read(["-q", "--cpu-only", "-o", "x.tacho", "a.py"])
parameters = manifests.manifest_parameters(line.options({}), output.SEGMENT_SIZE)
manifests.new_manifest(parameters).to_bytes()
"""
RECORDED = "from tachograph.recorder.inprocess import arm"
FROM_INSIDE = """
from tachograph.recorder.attached import recording
recording.options_from({"memory": False})
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with our packages, as a wheel would install them; an editable install imports much to find them."""
    for name in ("tachograph", "tachograph.recorder", "tachograph.format"):
        folder = tmp_path / name.replace(".", "/")
        folder.mkdir()
        sources = [each for place in import_module(name).__path__ for each in Path(place).iterdir()]
        for source in {each.name: each for each in sources if each.name not in OWN_FOLDERS}.values():
            (folder / source.name).symlink_to(source)
    return tmp_path


@pytest.mark.parametrize("code", [COMMAND, RECORDED, FROM_INSIDE])
def test_nothing_that_is_slow_is_imported(tree: Path, code: str) -> None:
    program = f"import sys; sys.path.append({str(tree)!r})\n{code}\nprint(*sorted(set(sys.modules) & set({SLOW!r})))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == ([], "")

"""Programs in which sys.executable is the program itself: nothing starts it a second time."""

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration import support
from integration.test_attach import attach, command, functions, is_complete
from integration.test_process_tree_arming import compile_embedding, shared_library

pytestmark = [pytest.mark.native, pytest.mark.recording]

SERVICE = """
import os, sys, time
def serve():
    end = time.monotonic() + 60
    while time.monotonic() < end and os.getppid() == parent:
        sum(range(5000))
parent = os.getppid()
assert os.path.samefile(sys.executable, "/proc/self/exe")
"""
PACKAGES = f"import site\nsite.addsitedir({sysconfig.get_path('purelib')!r})\n"


@pytest.fixture(scope="module")
def embedding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library, include = shared_library()
    name = library.name.removeprefix("lib").removesuffix(".so")
    link = [f"-L{library.parent}", f"-l{name}", f"-Wl,-rpath,{library.parent}"]
    return compile_embedding("embeds_service.c", tmp_path_factory.mktemp("service"), include, *link)


@contextmanager
def serving(program: Path, folder: Path, code: str, env: dict[str, str] | None = None) -> Iterator[int]:
    """The process id of the service, when it has said that it is ready."""
    environment = {**support.environment(), "PYTHONHOME": sys.base_prefix, **(env or {})}
    arguments = [str(program), str(folder / "log"), SERVICE + code + "\nprint('ready', flush=True)\nserve()\n"]
    process = subprocess.Popen(
        arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate(timeout=30)
        yield process.pid
        assert process.poll() is None
    finally:
        support.kill_quietly(process.pid)
        process.communicate(timeout=30)
    # Whatever has started the program has done so by now: a recording is complete, or was refused.
    assert (folder / "log").read_text(encoding="utf-8") == f"started {process.pid}\n"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="sys.remote_exec is the same for all programs")
def test_a_service_is_entered_and_not_started_again(embedding: Path, tmp_path: Path) -> None:
    with serving(embedding, tmp_path, PACKAGES) as pid:
        for name in ("one.tacho", "two.tacho"):
            done = attach(pid, "--duration", "300ms", "--label", "version=2", "-o", name, cwd=tmp_path)
            assert done.status == 0, done.stderr
            assert is_complete(tmp_path / name)
        assert "serve" in functions(tmp_path / "one.tacho")


def test_a_frozen_application_on_standby_is_recorded(embedding: Path, tmp_path: Path) -> None:
    freeze = PACKAGES + "sys.frozen = True\nfrom tachograph.recorder.attached import standby\nstandby.begin()\n"
    with serving(embedding, tmp_path, freeze) as pid:
        shown = command("dump", pid, cwd=tmp_path)
        assert (shown.status, shown.stderr) == (0, "")
        done = attach(pid, "--duration", "300ms", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert is_complete(tmp_path / "run.tacho")


def test_from_inside_another_interpreter_is_found(embedding: Path, tmp_path: Path) -> None:
    inside = (
        PACKAGES + "from tachograph.recorder import record\nwith record('run.tacho', memory=False): sum(range(10**6))"
    )
    with serving(embedding, tmp_path, inside):
        assert is_complete(tmp_path / "run.tacho")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("sys.frozen = True", "a frozen application"),
        ("sys.base_exec_prefix = '/nowhere'", "no interpreter is known here"),
    ],
)
def test_from_inside_it_is_refused_where_none_is_known(
    embedding: Path, tmp_path: Path, change: str, words: str
) -> None:
    inside = f"""
{change}
from tachograph.recorder import RecordingError, start
try:
    start("run.tacho")
except RecordingError as error:
    with open("refused", "w") as file: file.write(str(error))
"""
    with serving(embedding, tmp_path, PACKAGES + inside):
        refused = (tmp_path / "refused").read_text(encoding="utf-8")
    assert words in refused
    assert "\n" not in refused
    assert not (tmp_path / "run.tacho").exists()

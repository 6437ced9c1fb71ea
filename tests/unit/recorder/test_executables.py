"""A name on the command line: script or command."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from integration import support
from tachograph.recorder.command.executables import (
    belongs_elsewhere,
    find_command,
    gets_other_rights,
    preloads_sanitizer,
    why_left_alone,
)
from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.problems import Refused


def executable(path: Path, text: str = "#!/bin/sh\necho $HOME; exit 1\n") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH, and the working directory beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("PATH", f"/nowhere:{folder}:/bin")
    return folder


def resolved(name: str) -> tuple[str, str | None]:
    target = Target(Kind.SCRIPT, name, ("x",)).resolved()
    assert (target.what, target.arguments) == (name, ("x",))
    return target.kind, target.program


def test_commands_and_scripts(bin_folder: Path) -> None:
    work = Path.cwd()
    tool = executable(bin_folder / "tool")
    assert resolved("tool") == (Kind.COMMAND, str(tool))
    assert resolved("sh") == (Kind.COMMAND, "/bin/sh")
    assert resolved("/bin/sh") == (Kind.COMMAND, "/bin/sh")
    executable(work / "run.sh")
    assert resolved("./run.sh") == (Kind.COMMAND, "./run.sh")
    # As a shell has it, what lies here is not searched for; but a file that is Python is a script, wherever.
    (work / "tool").write_text("print(1)")
    assert resolved("tool") == (Kind.SCRIPT, None)
    (work / "tool").write_bytes(b"\x7fELF\0")
    assert resolved("tool") == (Kind.COMMAND, str(tool))
    (work / "tool").unlink()
    (work / "tool").mkdir()
    assert resolved("tool") == (Kind.COMMAND, str(tool))
    (work / "tool" / "__main__.py").touch()
    assert resolved("tool") == (Kind.SCRIPT, None)
    assert resolved(str(executable(work / "app.py", f"#!{sys.executable}\n"))) == (Kind.SCRIPT, None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.py", "there is no script missing.py; options of 'tachograph record' go before it"),
        ("missing", "there is no script or command missing; options of"),
        ("./missing", "there is no script or command ./missing"),
        (".", "is a directory without a __main__.py; name a script or a command, or use -m"),
        ("plain.sh", "plain.sh is neither a Python script nor an executable file"),
        ("", "is a directory"),
        ("a\0b", "cannot read the script"),
    ],
)
def test_what_cannot_be_run(bin_folder: Path, name: str, words: str) -> None:
    executable(Path("plain.sh")).chmod(0o644)
    (bin_folder / "missing").mkdir()  # no file
    with pytest.raises(Refused) as refused:
        Target(Kind.SCRIPT, name).resolved()
    assert words in refused.value.message


def test_the_search_is_that_of_the_system(bin_folder: Path) -> None:
    executable(bin_folder / "tool")
    (bin_folder / "data").touch(0o644)
    for name in ("tool", "data", "sh", "missing", "./tool", str(bin_folder / "tool")):
        for path in (None, "", os.environ["PATH"], f":{bin_folder}"):
            assert find_command(name, path) == (
                shutil.which(name, path=path) if path is not None else shutil.which(name, path=os.defpath)
            )


def test_a_script_of_another_environment(bin_folder: Path) -> None:
    """What pip wrote there needs that Python's packages; a script of this one does not."""
    other = bin_folder.parent / "venv" / "bin"
    other.mkdir(parents=True)
    python = executable(other / "python3.12")
    script = executable(other / "gunicorn", f"#!{python}\nimport sys\n")
    assert resolved(str(script)) == (Kind.SCRIPT, None)  # a Python of no environment, such as the system's
    (other.parent / "pyvenv.cfg").touch()
    assert resolved(str(script)) == (Kind.COMMAND, str(script))
    script.chmod(0o644)
    assert resolved(str(script)) == (Kind.SCRIPT, None)
    assert not belongs_elsewhere(f"#!{sys.executable}\n".encode())
    for head in (b"", b"#!", b"#!/\n", b"#!/usr/bin/env python3\n", b"print(1)", b"#!/\xff/python\n"):
        assert not belongs_elsewhere(head)


def test_invocation(bin_folder: Path) -> None:
    orig_argv = [sys.executable, "-O", "-m", "tachograph", "record"]
    assert Target(Kind.MODULE, "m", ("x",)).invocation(orig_argv) == (
        sys.executable,
        [sys.executable, "-O", "-m", "m", "x"],
    )
    command = Target(Kind.COMMAND, "tool", ("-c", "x"), "/bin/tool")
    assert command.invocation(orig_argv) == ("/bin/tool", ["tool", "-c", "x"])
    assert (command.command(), command.title()) == (["tool", "-c", "x"], "tool")
    assert Target(Kind.COMMAND, "./run.sh", (), "./run.sh").recording_stem() == "run"


@pytest.mark.parametrize(
    ("libraries", "is_one"),
    [
        ("libasan.so", True),
        ("/usr/lib/libjemalloc.so:/usr/lib/libtsan.so.2", True),
        ("/opt/llvm/libclang_rt.asan-x86_64.so", True),
        ("mine.so libubsan.so.1", True),
        ("/opt/libasan.so.8/mine.so", False),
        ("mylibasan.so", False),
        ("", False),
    ],
)
def test_a_preloaded_sanitizer(libraries: str, is_one: bool) -> None:
    assert preloads_sanitizer({"LD_PRELOAD": libraries}) == is_one
    why_not = why_left_alone(sys.executable, {"LD_PRELOAD": libraries})
    assert (why_not is not None and "sanitizer" in why_not) == is_one
    assert not preloads_sanitizer({})


NOBODY = 65534
CAPABILITY = b"\x01\0\0\x02" + b"\0\x04" + bytes(14)
"""struct vfs_cap_data of version 2: CAP_NET_BIND_SERVICE is permitted, and effective at once."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files with other rights")
def test_programs_with_other_rights(open_folder: Path) -> None:
    """Judged as the kernel does: by whom it is started counts."""

    def judged(program: Path) -> tuple[bool, str]:
        return gets_other_rights(str(program)), support.as_user(NOBODY, lambda: gets_other_rights(str(program)))

    program, script = executable(open_folder / "program", ""), open_folder / "script"
    executable(script, f"#!{program} -x\n").chmod(0o4755)
    assert judged(program) == judged(script) == (False, "False")  # the bits of a script count for nothing
    os.setxattr(program, "security.capability", CAPABILITY)
    assert judged(program) == judged(script) == (False, "True")  # root has them all
    os.removexattr(program, "security.capability")
    for owner, group, mode, of_root, of_nobody in (
        (0, 0, 0o4755, False, True),
        (NOBODY, 0, 0o4755, True, False),
        (0, NOBODY, 0o2755, True, False),
        (0, NOBODY, 0o2745, False, False),  # a lock, once upon a time
        (0, 0, 0o4711, False, True),  # it cannot be read
    ):
        os.chown(program, owner, group)
        program.chmod(mode)
        assert judged(program) == (of_root, str(of_nobody)), oct(mode)
    assert not gets_other_rights(str(open_folder / "missing"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_caller_that_acts_as_another_user() -> None:
    def acts() -> bool:
        os.setresuid(NOBODY, 1, 1)
        return gets_other_rights("/bin/true")

    assert support.as_user(0, acts) == "True"

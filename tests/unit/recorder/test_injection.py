"""What a process is given to run when it is entered."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tachograph.recorder.attached import injection
from tachograph.recorder.attached.entry_code import IN_THREAD

STANDS_BY = """
import sys
def begin(once):
    if {from_place}:
        import os, tachograph.recorder
        from tachograph.recorder._native import NATIVE
        assert any(os.path.exists(f"{{place}}/libtachograph.so") for place in tachograph.recorder.__path__)
    print("stands by", once, sys.path == sys.argv)
"""


def script(folder: Path, package: Path) -> str:
    return injection.SCRIPT.format(
        script=str(folder / "enter.py"),
        report=str(folder / "report"),
        folder=str(folder),
        package=str(package / "__init__.py"),
        place=str(package),
        native=str(package / "elsewhere"),
    )


@pytest.mark.parametrize("installed", [False, True])
def test_it_finds_the_package_and_leaves_the_path_alone(tmp_path: Path, installed: bool) -> None:
    package, folder = tmp_path / "site" / "tachograph", tmp_path / "script"
    attached = package / "recorder" / "attached"
    for each in (package, attached.parent, attached):
        each.mkdir(parents=True, exist_ok=True)
        (each / "__init__.py").touch()
    (attached / "standby.py").write_text(STANDS_BY.format(from_place=not installed), encoding="utf-8")
    (package / "elsewhere").mkdir()
    (package / "elsewhere" / "_native.py").write_text("NATIVE = 1\n", encoding="utf-8")
    (package / "elsewhere" / "libtachograph.so").touch()
    folder.mkdir()
    (folder / "enter.py").write_text(script(folder, package) + "stand_by()\n", encoding="utf-8")
    path = f"[{str(package.parent)!r}, '/behind']" if installed else "['/behind']"
    code = f"import sys; sys.path += {path}; sys.argv = list(sys.path); exec(open({str(folder / 'enter.py')!r}).read())"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stands by True True\n", "")
    assert not folder.exists()


def test_what_goes_wrong_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "enter.py").write_text(script(folder, tmp_path / "nothing") + "stand_by()\n", encoding="utf-8")
    code = f"with open({str(folder / 'enter.py')!r}) as file: exec(file.read())"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "No such file" in (folder / "report").read_text(encoding="utf-8")


@pytest.mark.parametrize("owner", [os.geteuid(), 65534])
def test_a_script_of_another_user_is_not_run(tmp_path: Path, capfd: pytest.CaptureFixture[str], owner: int) -> None:
    if owner != os.geteuid() and os.geteuid() != 0:
        pytest.skip("only root can make another user's file")
    path = tmp_path / "enter.py"
    path.write_text("import os; os.write(1, b'ran')", encoding="utf-8")
    os.chown(path, owner, -1)
    exec(IN_THREAD.format(path=str(path), pid=os.getpid()), {})  # noqa: S102
    assert capfd.readouterr().out == ("ran" if owner == os.geteuid() else "")
    exec(IN_THREAD.format(path=str(tmp_path / "gone"), pid=os.getpid()), {})  # noqa: S102


def test_folders_that_other_users_cannot_write_to_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, shared, temporary = tmp_path / "own", tmp_path / "shared", tmp_path / "temporary"
    for folder in (own, shared, temporary):
        folder.mkdir(mode=0o700)
    shared.chmod(0o777 | stat.S_ISVTX)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(temporary))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own))
    folders = list(injection._folders())
    assert (folders[0], folders[-1]) == (str(own), str(temporary))
    for other in (str(shared), "relative", str(tmp_path / "missing"), ""):
        monkeypatch.setenv("XDG_RUNTIME_DIR", other)
        assert other not in injection._folders()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (RuntimeError("Can't find the main thread in the remote process"), "it has more than one interpreter"),
        (PermissionError(1, "Operation not permitted"), "takes the right to trace it"),
        (RuntimeError("Failed to read memory"), "takes the right to trace it"),
    ],
)
def test_why_a_process_cannot_be_entered(error: OSError | RuntimeError, why: str) -> None:
    """In CPython's words where it has several interpreters: sys.remote_exec takes the newest."""
    assert why in injection.why_not_entered(1, error)
    assert "tachograph standby" in injection.why_not_entered(1, error)

"""A recorded program sees what it would see under python, and shows what it would show."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from integration import support

ARGUMENTS = ["plain", "--interval", "7", "-o", "x y", "--", "-q", ""]


def dumps(target: list[str | Path], cwd: Path, sampler: str, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    environment = support.environment(TACHOGRAPH_LIKE="no", **env)
    plain = support.bare(target, cwd, stdin="typed\nin", env=environment)
    recorded = support.record(target, cwd, "--sampler", sampler, stdin="typed\nin", env=environment)
    assert plain.status == 0, plain.stderr
    assert recorded.status == 0, recorded.stderr
    assert recorded.stderr == plain.stderr
    return json.loads(plain.stdout), json.loads(recorded.stdout)


def check_same(plain: dict[str, Any], recorded: dict[str, Any], sampler: str) -> None:
    if sampler == "signal":  # the algorithm needs one signal for itself, and Python shows its handler
        changed = {n for n in plain["signals"] if plain["signals"][n] != recorded["signals"][n]}
        assert len(changed) <= 1
        plain.pop("signals"), recorded.pop("signals")
    differing = {key: (plain[key], recorded[key]) for key in plain if plain[key] != recorded[key]}
    assert not differing
    assert plain.keys() == recorded.keys()


def test_script(tmp_path: Path, sampler: str) -> None:
    check_same(*dumps([support.PROGRAMS / "dump.py", *ARGUMENTS], tmp_path, sampler), sampler)


def test_script_in_the_current_folder(tmp_path: Path, sampler: str) -> None:
    shutil.copy(support.PROGRAMS / "dump.py", tmp_path)
    check_same(*dumps(["dump.py", *ARGUMENTS], tmp_path, sampler), sampler)


def test_module(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    shutil.copy(support.PROGRAMS / "dump.py", tmp_path / "package" / "__main__.py")
    support.bare(["-c", "import package.__main__"], tmp_path)  # its cached byte code must not tell the two apart
    check_same(*dumps(["-m", "package", *ARGUMENTS], tmp_path, sampler), sampler)


def test_code(tmp_path: Path, sampler: str) -> None:
    source = (support.PROGRAMS / "dump.py").read_text(encoding="utf-8")
    check_same(*dumps(["-c", source, *ARGUMENTS], tmp_path, sampler), sampler)


def test_python_settings_of_the_environment(tmp_path: Path, sampler: str) -> None:
    """Flags reach a program by the environment; and a preload of the user's own stays."""
    flags = {"PYTHONUTF8": "1", "PYTHONHASHSEED": "7", "PYTHONWARNINGS": "error::UserWarning", "PYTHONUNBUFFERED": "1"}
    plain, recorded = dumps([support.PROGRAMS / "dump.py"], tmp_path, sampler, **flags, LD_PRELOAD="libm.so.6")
    assert "utf8_mode=1" in recorded["flags"]
    assert recorded["environ"]["LD_PRELOAD"] == "libm.so.6"
    check_same(plain, recorded, sampler)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_exception_has_its_own_traceback(tmp_path: Path, sampler: str, stream: str) -> None:
    target = [support.PROGRAMS / "raises.py"]
    plain, recorded = support.bare(target, tmp_path), support.record(target, tmp_path, "--sampler", sampler)
    assert plain.status == recorded.status == 1
    assert getattr(plain, stream) == getattr(recorded, stream)


def test_syntax_error_is_the_programs_own(tmp_path: Path, sampler: str) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("def broken(:\n    pass\n", encoding="utf-8")
    plain, recorded = support.bare([script], tmp_path), support.record([script], tmp_path, "--sampler", sampler)
    assert plain == recorded
    assert "SyntaxError" in recorded.stderr


def test_missing_module_is_pythons_own_error(tmp_path: Path, sampler: str) -> None:
    target = ["-m", "no_such_module_here"]
    plain, recorded = support.bare(target, tmp_path), support.record(target, tmp_path, "--sampler", sampler)
    assert plain == recorded


def test_output_is_not_buffered_or_mixed(tmp_path: Path, sampler: str) -> None:
    code = "import sys\nfor i in range(2000): print('o', i); print('e', i, file=sys.stderr)"
    assert support.record(["-c", code], tmp_path, "--sampler", sampler) == support.bare(["-c", code], tmp_path)


def test_child_processes_inherit_nothing(tmp_path: Path, sampler: str) -> None:
    """The recorder's settings are gone from the environment, for the program and for what it starts."""
    code = (
        "import os, subprocess, sys\n"
        "child = 'import os; print(list(os.environ.items()))'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
        "subprocess.run(['env'], check=True)\n"
    )
    assert support.record(["-c", code], tmp_path, "--sampler", sampler) == support.bare(["-c", code], tmp_path)


@pytest.mark.native
def test_the_profiled_process_imports_next_to_nothing(tmp_path: Path) -> None:
    code = "import sys; print('\\n'.join(sorted(sys.modules)))"
    plain, recorded = support.bare(["-c", code], tmp_path), support.record(["-c", code], tmp_path)
    extra = set(recorded.stdout.split()) - set(plain.stdout.split())
    ours = {name for name in extra if name.split(".")[0] == "tachograph"}
    assert "tachograph.recorder._native" in ours
    assert {name for name in extra - ours if name.split(".")[0] not in sys.stdlib_module_names} == set()
    assert not any("format" in name or "analyzer" in name for name in ours)


def test_a_thread_of_native_code_after_a_subinterpreter(tmp_path: Path) -> None:
    """From then on PyGILState_Check says yes to threads that do not hold the GIL; the recorder must not believe it."""
    code = (
        "import ctypes\n"
        "try: import _xxsubinterpreters as interpreters\n"
        "except ImportError: import _interpreters as interpreters\n"
        "interpreters.destroy(interpreters.create())\n"
        "libc = ctypes.CDLL(None)\n"  # calls without the GIL
        "thread = ctypes.c_ulong()\n"
        "function = ctypes.cast(libc.getpid, ctypes.c_void_p)\n"
        "print(libc.pthread_create(ctypes.byref(thread), None, function, None), libc.pthread_join(thread, None))\n"
    )
    recorded = support.record(["-c", code], tmp_path)
    assert (recorded.status, recorded.stdout) == (0, "0 0\n"), recorded.stderr

"""The stress program on a build of the native code with the address and undefined-behaviour sanitizers.

Builds the checkout into an environment of its own, which takes a minute, so the tests are slow ones.
"""

import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = [pytest.mark.native, pytest.mark.slow]

CHECKOUT = Path(__file__).parents[2]
STRESS = support.PROGRAMS / "stress.py"
REPORT = re.compile(r"runtime error|ERROR: AddressSanitizer|SUMMARY: ")


def run(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        command, cwd=cwd, env=env or support.environment(), capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done


@pytest.fixture(scope="module", params=["undefined", "address"])
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The interpreter of an environment with a sanitizer build, and the environment variables that it needs."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None or not (CHECKOUT / "pyproject.toml").exists():
        pytest.skip("no compiler or no checkout to build")
    kind = str(request.param)
    folder = tmp_path_factory.mktemp(kind)
    run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
    python = folder / "venv" / "bin" / "python"
    define = f"cmake.define.TACHOGRAPH_SANITIZE={kind}"
    run([str(python), "-m", "pip", "install", "-q", str(CHECKOUT), "-C", define], folder)
    # What the stress program and the commands need beside us comes from the environment that runs the tests.
    packages = folder / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "tests-environment.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    settings = {"UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=0:log_path={folder / 'ubsan'}"}
    if kind == "address":
        runtime = run([compiler, "-print-file-name=libasan.so"], folder).stdout.strip()
        options = "detect_leaks=0:verify_asan_link_order=0:handle_segv=0:handle_sigbus=0:allow_user_segv_handler=1"
        settings = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": f"{options}:log_path={folder / 'asan'}"}
    return python, settings


def test_stress_is_clean(sanitized: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    python, settings = sanitized
    command = [str(python), "-m", "tachograph", "record", "-q", "-o", "run.tacho", "--interval", "4"]
    target = [str(STRESS), str(tmp_path / "truth.json"), "10"]
    done = run([*command, *target], tmp_path, support.environment(**settings))
    assert done.stdout == "rounds\n"
    logs = [path.read_text(encoding="utf-8", errors="replace") for path in python.parents[2].glob("*san.*")]
    assert not [text for text in (*logs, done.stderr) if REPORT.search(text)], logs
    assert len(support.rows(tmp_path / "run.tacho", "cpu")) > 300

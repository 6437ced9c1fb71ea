"""Builds the wheel for a root with Debian's cross compiler, and installs it there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from .root import BUILD, CHECKOUT, packages_of

TOOLCHAIN = """\
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(PYTHON_MODULE_EXTENSION {suffix} CACHE STRING "")
set(PYTHON_MODULE_DEBUG_POSTFIX "" CACHE STRING "")
set(Python_EXECUTABLE {python} CACHE FILEPATH "")
set(Python_INCLUDE_DIR {headers} CACHE PATH "")
"""
SOURCES = ("native", "src", "recorder", "analyzer", "format-spec", "cmake", "CMakeLists.txt", "pyproject.toml")


def newest_source() -> float:
    """When a source of the wheel was last changed."""
    files = [each for name in SOURCES for each in [CHECKOUT / name, *(CHECKOUT / name).rglob("*")] if each.is_file()]
    return max(each.stat().st_mtime for each in files if "__pycache__" not in each.parts)


def install(root: Path, version: str) -> None:
    """Put what the sources are now into the root; nothing is done if that was done before."""
    stamp = root / ".installed"
    if stamp.exists() and stamp.stat().st_mtime > newest_source():
        return
    print(f"test-arm: wheel for CPython {version} on aarch64", flush=True)
    wheel = _build(root, version)
    packages = packages_of(root, version)
    for each in packages.glob("tachograph*"):
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    stamp.touch()


def interpreter(version: str) -> str | None:
    """This machine's interpreter of a version: PATH's or pyenv's. None if there is none that runs.

    pyenv puts stand-ins on PATH for versions that are not chosen: they are there, and do not run.
    """
    others = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"), reverse=True)
    for name in (f"python{version}", *map(str, others)):
        path = shutil.which(name)
        if path and _version_of(path) == version:
            return path
    return None


def _version_of(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _build(root: Path, version: str) -> Path:
    python = interpreter(version)
    if python is None:
        sys.exit(f"test-arm: no python{version} on this machine; the build asks one of the same version what it is")
    suffix = f".cpython-{version.replace('.', '')}-aarch64-linux-gnu.so"
    headers = root / f"usr/include/python{version}"
    # Debian's pyconfig.h includes the one of its processor by a path that only a compiler of the root knows.
    own = BUILD / f"include-{version}" / "aarch64-linux-gnu"
    own.mkdir(parents=True, exist_ok=True)
    link = own / headers.name
    link.unlink(missing_ok=True)
    link.symlink_to(root / "usr/include/aarch64-linux-gnu" / headers.name)
    toolchain = BUILD / f"toolchain-{version}.cmake"
    toolchain.write_text(TOOLCHAIN.format(suffix=suffix, python=python, headers=headers))
    wheels = BUILD / f"wheel-{version}"
    shutil.rmtree(wheels, ignore_errors=True)
    environment = {
        **os.environ,
        "CFLAGS": f"-I{own.parent}",
        "CXXFLAGS": f"-I{own.parent}",
        "CMAKE_ARGS": f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
        "_PYTHON_HOST_PLATFORM": "linux-aarch64",
        "SETUPTOOLS_EXT_SUFFIX": suffix,
    }
    settings = (f"build-dir={BUILD / f'cmake-{version}'}", "cmake.define.TACHOGRAPH_NATIVE=ON")
    options = [word for setting in settings for word in ("--config-settings", setting)]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "wheel", "--no-deps"]
    words = [*command, *options, "--wheel-dir", str(wheels), str(CHECKOUT)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"test-arm: the wheel cannot be built\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    (wheel,) = wheels.glob("*.whl")
    return wheel

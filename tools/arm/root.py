"""Makes a root of Debian's arm64 packages with one CPython and with what the tests need; each step once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = CHECKOUT / "build" / "arm"
RELEASES = {"3.11": "bookworm", "3.13": "trixie"}
"""Debian's release that has a CPython."""

NEEDED = {
    "debootstrap": "debootstrap",
    "dpkg-deb": "dpkg",
    "qemu-aarch64-static": "qemu-user-static",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "unshare": "util-linux",
}
"""Commands, and the packages that have them."""

LINKS = ("ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "readelf", "strip")
COMPILERS = {"gcc": ("cc", "gcc"), "g++": ("c++", "g++")}
INSIDE = "/checkout"
"""Where the checkout is in a root."""
HOST = "/host"
"""Where the root has the files of the machine, so that its compiler need not be emulated."""
HOST_LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")

LEFT_OUT = ("tachograph", "playwright")
"""Of what the tests need: what is built here, and what drives a browser, of which there is none."""
TAGS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


def run(*command: str | Path, quiet: bool = True) -> None:
    """Run a command, which must succeed; of a quiet one the output is shown if it does not."""
    output = subprocess.PIPE if quiet else None
    words = [*map(str, command)]
    done = subprocess.run(words, check=False, stdout=output, stderr=subprocess.STDOUT if quiet else None, text=True)
    if done.returncode != 0:
        sys.exit(f"test-arm: this failed: {' '.join(words)}\n{done.stdout or ''}".rstrip())


def check_commands() -> None:
    """Exit with one line that says what to install, if anything is missing."""
    missing = sorted({package for command, package in NEEDED.items() if shutil.which(command) is None})
    if missing:
        sys.exit(f"test-arm: needed, and not installed: apt-get install {' '.join(missing)}")


def make(version: str) -> Path:
    """The root for a CPython."""
    root = BUILD / version
    for step in (_unpack, _settle, _link_compiler, _bring_packages):
        done = root / f".made{step.__name__}"
        if not done.exists():
            print(f"test-arm: root for CPython {version}: {step.__name__.strip('_').replace('_', ' ')}", flush=True)
            step(root, version)
            done.touch()
    return root


def _unpack(root: Path, version: str) -> None:
    """Debian's packages, unpacked. To set them up takes minutes under emulation, and the tests do not need it."""
    shutil.rmtree(root, ignore_errors=True)
    names = [f"python{version}", f"python{version}-dev", f"python{version}-venv", "libstdc++6"]
    options = ("--arch=arm64", "--variant=minbase", "--foreign", f"--include={','.join(names)}")
    run("debootstrap", *options, RELEASES[version], root)
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        run("dpkg-deb", "-x", package, root)


def _settle(root: Path, version: str) -> None:
    """What the set-up of packages would have written."""
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    for folder in (HOST, INSIDE, "/dev/shm", "/proc", "/sys"):
        (root / folder.lstrip("/")).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    _link(root / "usr/bin/python3", f"python{version}")
    if not (root / "bin/sh").exists():
        _link(root / "bin/sh", "dash")
    command = root / "usr/local/bin/tachograph"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(
        f"#!/usr/bin/python{version}\nimport sys\n\nfrom tachograph.start import run\n\nsys.exit(run())\n"
    )
    command.chmod(0o755)


def _link_compiler(root: Path, _version: str) -> None:
    """The machine's cross compiler under the names of a compiler of the root's own."""
    loader = "lib64/ld-linux-x86-64.so.2"
    (root / "lib64").mkdir(exist_ok=True)
    for place in (loader, *HOST_LIBRARIES, "usr/lib/gcc-cross", "usr/aarch64-linux-gnu"):
        _link(root / place, f"{HOST}/{place}")
    names = {name: (name,) for name in LINKS} | COMPILERS
    for name, links in names.items():
        for link in links:
            _link(root / "usr/local/bin" / link, f"{HOST}/usr/bin/aarch64-linux-gnu-{name}")


def _link(at: Path, to: str) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.unlink(missing_ok=True)
    at.symlink_to(to)


def packages_of(root: Path, version: str) -> Path:
    """The folder of modules that are installed."""
    return root / f"usr/local/lib/python{version}/dist-packages"


def _bring_packages(root: Path, version: str) -> None:
    """Wheels of what records, reads and tests."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    names = [*project["dependencies"], *extras["analyze"], *extras["test"]]
    wanted = [name for name in names if not name.startswith(LEFT_OUT)]
    tags = [word for tag in TAGS for word in ("--platform", tag)]
    options = ("--only-binary=:all:", "--python-version", version, *tags, "--target", str(packages_of(root, version)))
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *options, *wanted)

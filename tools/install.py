"""Installs packages into the environment of the interpreter that runs this: with uv if it can be had, else with pip.

Of the minutes that pip takes to find, unpack and compile what the tests need, uv takes a fraction. What pip is told of
places and bounds (pip.conf, PIP_INDEX_URL and the like) uv is told as well. The arguments are those of ``pip install``.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
QUIET_INSTALL = ("install", "--quiet", "--quiet")
PLACES = ("index-url", "extra-index-url", "find-links", "constraint")
"""Settings of pip that are options of uv by the same name, one for each word of the value."""


def uv_options(listing: str) -> list[str]:
    """The options for uv that say what ``pip config list`` shows; variables of the environment go before files."""
    values: dict[str, str] = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        values[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    options = [f"--{name}={word}" for name in PLACES for word in values.get(name, "").split()]
    return [*options, *(["--no-index"] if values.get("no-index", "0").lower() in ("1", "true", "yes", "on") else [])]


def has_uv() -> bool:
    """Whether uv is there, or can be installed."""
    if importlib.util.find_spec("uv") is not None:
        return True
    return subprocess.run([*PIP, *QUIET_INSTALL, "uv"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def with_uv(arguments: Sequence[str]) -> bool:
    """Install with uv; whether that was possible. Indexes are searched as pip does: the best version of all counts."""
    if not has_uv():
        return False
    listing = subprocess.run([*PIP, "config", "list"], check=False, capture_output=True, text=True).stdout
    command = (sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "--quiet")
    settings = ("--index-strategy", "unsafe-best-match", "--compile-bytecode", *uv_options(listing))
    # It would take a folder for unchanged whose pyproject.toml is.
    settings += ("--reinstall-package", "tachograph")
    return subprocess.run([*command, *settings, *arguments], check=False).returncode == 0


def main() -> int:
    """Install; the exit status."""
    arguments = sys.argv[1:]
    if with_uv(arguments):
        return 0
    print("uv could not install that; pip is trying, which may take minutes ...", flush=True)
    return subprocess.run([*PIP, *QUIET_INSTALL, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Finds the browser that these tests drive, or brings one: ``python tests/browser/chromium.py [--bring]``.

Prints its path. The exit status is 1, with a line that says what to do, where there is none.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CACHE = "ms-playwright/chromium*/chrome-linux*/chrome"
"""Where ``playwright install chromium`` puts one, below the user's cache."""

MISSING = "no browser: install one with 'apt-get install chromium' or 'playwright install chromium'"


NEEDED = "TACHOGRAPH_TESTS_NEED_BROWSER"
"""The variable with which a run of the tests must not do without a browser; CI sets it."""


def needed() -> bool:
    """Whether the tests fail where there is no browser, and are not skipped."""
    return os.environ.get(NEEDED, "") not in ("", "0")


def find() -> str | None:
    """The path of a Chromium that can be driven, or None."""
    named = next(filter(None, map(shutil.which, NAMES)), None)
    if named is not None:
        return named
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return next((str(path) for path in sorted(cache.glob(CACHE), reverse=True) if os.access(path, os.X_OK)), None)


def bring() -> str | None:
    """The same, after Debian's was installed if there was none and this user may install it."""
    found = find()
    if found is not None or shutil.which("apt-get") is None or os.geteuid() != 0:
        return found
    print("installing Debian's chromium, which the browser tests drive ...", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "--yes", "--quiet", "--quiet", "--no-install-recommends", "chromium"]
    for command in (install, ["apt-get", "update", "--quiet", "--quiet"], install):
        done = subprocess.run(command, env=environment, check=False, stdout=sys.stderr)
        if command is install and done.returncode == 0:
            break
    return find()


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description="Finds the browser that tests/browser drive.")
    parser.add_argument("--bring", action="store_true", help="install Debian's where there is none, as root")
    found = bring() if parser.parse_args().bring else find()
    print(found or MISSING)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())

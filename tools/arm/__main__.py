"""`make test-arm`: the root, the wheel, and the tests under emulation. Run again, it goes on where it was."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from . import enclosed, install, root, run_tests


def main() -> int:
    """What was asked for; the exit status."""
    parser = argparse.ArgumentParser(prog="make test-arm", description="Runs the tests on aarch64 under emulation.")
    parser.add_argument("place", nargs="*", help=f"files or folders of tests (default: {', '.join(run_tests.SUITES)})")
    parser.add_argument("--python", choices=sorted(root.RELEASES), default="3.11", help="(default: 3.11)")
    parser.add_argument("--minutes", type=float, default=60, help="begin no file of tests later (default: 60)")
    parser.add_argument("--jobs", type=int, default=2, help="files at a time (default: 2)")
    parser.add_argument("--as-installed", action="store_true", help="test what is in the root, and build nothing")
    parser.add_argument("-k", dest="keyword", help="only tests that match, as pytest's -k; no result is kept")
    parser.add_argument("--exec", dest="command", nargs=argparse.REMAINDER, help="run a command in the root instead")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("test-arm: needs root, to mount and to change the root")
    root.check_commands()
    began = time.monotonic()
    place = root.make(asked.python)
    if not asked.as_installed:
        install.install(place, asked.python)
    print(f"test-arm: root and wheel are there after {time.monotonic() - began:.0f} s", flush=True)
    with enclosed.emulator():
        if asked.command:
            return subprocess.run(enclosed.command(place, asked.python, asked.command), check=False).returncode
        outcomes, left = run_tests.run_all(
            place,
            asked.python,
            run_tests.test_files(asked.place),
            until=time.monotonic() + 60 * asked.minutes,
            jobs=asked.jobs,
            options=("-k", asked.keyword) if asked.keyword else (),
        )
    print(run_tests.summary(outcomes, left))
    print(f"test-arm: {time.monotonic() - began:.0f} s in all")
    return 0 if outcomes and all(each.settled for each in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Says in one line why a virtual environment cannot be made with the interpreter that runs this, and exits with 2.

Run by the Makefile before `python -m venv`, by whatever `python3` is: it must be able to say no politely, so nothing
here is newer than Python 3.6.
"""

import importlib.util
import sys

OLDEST = (3, 11)


def obstacle() -> str:
    """The reason and the remedy, one line; empty if there is none."""
    version = ".".join(map(str, sys.version_info[:2]))
    if sys.version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        return "{} is Python {}; tachograph needs {} or later: make PYTHON=/path/to/python{}".format(
            sys.executable, version, wanted, wanted
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        return "{} cannot make virtual environments: install its venv package (python{}-venv)".format(
            sys.executable, version
        )
    return ""


if __name__ == "__main__":
    reason = obstacle()
    if reason:
        print(reason, file=sys.stderr)
        sys.exit(2)

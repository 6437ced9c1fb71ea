"""Refuses a tag that is not the version of the package, and a version that the change log does not have."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version(root: Path = ROOT) -> str:
    """The version of the package, as src/tachograph/__init__.py has it."""
    found = re.search(
        r'^__version__ = "([^"]+)"$', (root / "src/tachograph/__init__.py").read_text("utf-8"), re.MULTILINE
    )
    if found is None:
        raise ValueError("src/tachograph/__init__.py has no __version__")
    return found[1]


def obstacle(tag: str, root: Path = ROOT) -> str:
    """Why a tag cannot be released, one line; empty if it can."""
    wanted = version(root)
    if tag != f"v{wanted}":
        return f"the tag is {tag}, and the package v{wanted} (src/tachograph/__init__.py)"
    heading = rf"^## \[{re.escape(wanted)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(heading, (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        return f"CHANGELOG.md has no section '## [{wanted}] - YYYY-MM-DD'"
    return ""


if __name__ == "__main__":
    if reason := obstacle(sys.argv[1]):
        sys.exit(f"release: {reason}")

"""What a report in the terminal loads: each of these takes longer to import than the report takes to make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.recording

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"

DEAR = ("pandas", "matplotlib", "jinja2", "pyarrow.compute", "pyarrow.dataset", "pyarrow.acero", "numpy.ma")

PROGRAM = f"""
import sys
from tachograph.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*[name for name in {DEAR} if name in sys.modules], file=sys.stderr)
"""


def loaded(*arguments: str) -> str:
    """The dear modules that a command loads."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stderr.strip()


@pytest.mark.parametrize(
    ("recording", "options"),
    [("memory", []), ("memory", ["--json", "-"]), ("memory", ["--memory"]), ("tree", ["--processes"])],
)
def test_a_report_in_the_terminal_loads_nothing_dear(recording: str, options: list[str]) -> None:
    assert loaded("analyze", str(VECTORS / f"{recording}.tacho"), *options) == ""


def test_a_page_does() -> None:
    """Without what the other tests look for, they could not fail."""
    assert "jinja2" in loaded("analyze", str(VECTORS / "memory.tacho"), "--html", "/dev/null")

"""The examples in the documentation run as they stand.

A block under `<!-- file: NAME -->` is written to a file, one under `<!-- run -->` is executed: Python as a script, a
console block line by line after its `$` prompts. The blocks of a page share a folder. `docs` and `examples` in it are
those of this repository. A block under `<!-- run, any status -->` may fail. One under `<!-- run, with NAME NAME -->` is
run where these commands are installed.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARKED_BLOCK = re.compile(
    r"^<!-- (file: (?P<file>\S+)|run(?P<any>, any status)?(, with (?P<needs>[\w -]+))?) -->\n"
    r"```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TIMEOUT_S = 60


@dataclass(frozen=True)
class Block:
    """One marked block of a page."""

    file: str | None
    kind: str
    text: str
    any_status: bool
    needs: tuple[str, ...]

    def commands(self) -> list[list[str]]:
        """What to run, as argument vectors."""
        if self.kind == "python":
            return [[sys.executable, "-c", self.text]]
        return [["sh", "-c", line[2:]] for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(page: Path) -> list[Block]:
    """The marked blocks of a page, in order."""
    found = MARKED_BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [
        Block(
            match["file"], match["kind"], match["text"], match["any"] is not None, tuple((match["needs"] or "").split())
        )
        for match in found
    ]


PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if blocks(page)]


LONG = ROOT / "docs/how-to/compare-two-recordings.md"  # many runs of each program


@pytest.mark.native
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page == LONG else page for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("tachograph.recorder._native", reason="recording is not supported here")
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    for folder in ("docs", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for block in blocks(page):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            continue
        if not all(shutil.which(name, path=environment["PATH"]) for name in block.needs):
            continue
        for command in block.commands():
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
            said = f"{page.name}: {command[-1]}\nstatus {done.returncode}\n{done.stdout}{done.stderr}"
            assert block.any_status or done.returncode == 0, said
            assert "Traceback" not in done.stderr, said


def test_every_local_link_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []

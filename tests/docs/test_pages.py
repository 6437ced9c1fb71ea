"""The examples in the documentation run as they stand.

A block under `<!-- file: NAME -->` is written to a file, one under `<!-- run -->` is executed: Python as a script, a
console block line by line after its `$` prompts. The blocks of a page share a folder. Python blocks that follow each
other share a process, each with names of its own: to load pandas takes longer than most of them. `docs` and `examples`
in the folder are those of this repository. A block under `<!-- run, any status -->` may fail. One under `<!-- run, with
NAME NAME -->` is run where these commands are installed.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.warm_command import run_command

ROOT = Path(__file__).resolve().parents[2]
MARKED_BLOCK = re.compile(
    r"^<!-- (file: (?P<file>\S+)|run(?P<any>, any status)?(, with (?P<needs>[\w -]+))?) -->\n"
    r"```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TIMEOUT_S = 60

OURS = re.compile(r"\$ tachograph( [\w./:=,@+-]+)+")
"""A line that a shell would hand to the command as it stands."""

SCRIPTS = """\
import json, sys
for number, text in enumerate(json.load(sys.stdin)):
    exec(compile(text, f"block {number + 1} of these", "exec"), {"__name__": "__main__"})
"""
"""Runs the texts on standard input, each as a script."""


@dataclass(frozen=True)
class Block:
    """One marked block of a page."""

    file: str | None
    kind: str
    text: str
    any_status: bool
    needs: tuple[str, ...]

    @property
    def is_script(self) -> bool:
        """Whether it is Python that is to be run."""
        return self.file is None and self.kind == "python"


@dataclass(frozen=True)
class Command:
    """One thing to run, with what it reads."""

    arguments: list[str]
    input: str | None
    text: str
    any_status: bool

    def run(self, folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        if OURS.fullmatch(self.text):
            return run_command(self.text.split()[2:], folder, environment, TIMEOUT_S)
        return subprocess.run(
            self.arguments,
            cwd=folder,
            env=environment,
            input=self.input,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


def commands(together: list[Block]) -> list[Command]:
    """What blocks run: a console block each of its lines, and scripts one process."""
    if together[0].is_script:
        texts = [block.text for block in together]
        return [Command([sys.executable, "-c", SCRIPTS], json.dumps(texts), "\n".join(texts), together[0].any_status)]
    return [
        Command(["sh", "-c", line[2:]], None, line, block.any_status)
        for block in together
        for line in block.text.splitlines()
        if line.startswith("$ ")
    ]


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


# Many runs of a program each; those of the case studies are in test_case_studies.py as well.
LONG = [
    ROOT / "docs/how-to/ask-many-recordings.md",
    ROOT / "docs/how-to/compare-two-recordings.md",
    ROOT / "docs/how-to/is-it-faster.md",
    ROOT / "docs/how-to/record-a-test-run.md",
    ROOT / "docs/how-to/keep-a-flight-recorder.md",
    ROOT / "docs/how-to/name-spans.md",
    # The tutorial has the same commands, and of workers the page on several processes.
    ROOT / "docs/how-to/read-the-report.md",
    ROOT / "docs/how-to/record-worker-processes.md",
    *(ROOT / "docs/case-studies").glob("*.md"),
]


@pytest.mark.native
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in PAGES],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("tachograph.recorder._native", reason="recording is not supported here")
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    for folder in ("docs", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    there = [each for each in blocks(page) if all(shutil.which(name, path=environment["PATH"]) for name in each.needs)]
    # What is no script is a group of its own: its place in the list tells it apart.
    groups = itertools.groupby(
        enumerate(there), lambda each: (each[1].any_status, -1 if each[1].is_script else each[0])
    )
    for _, numbered in groups:
        together = [block for _, block in numbered]
        if together[0].file is not None:
            (tmp_path / together[0].file).write_text(together[0].text, encoding="utf-8")
            continue
        for command in commands(together):
            done = command.run(tmp_path, environment)
            said = f"{page.name}: {command.text}\nstatus {done.returncode}\n{done.stdout}{done.stderr}"
            assert command.any_status or done.returncode == 0, said
            assert "Traceback" not in done.stderr, said


def test_every_local_link_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []

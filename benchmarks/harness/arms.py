"""The arms of a comparison: ways to run the same program, each a command template.

A template is a shell-like command line. `{python}` is the arm's interpreter and `{bin}` the folder it is in,
`{tachograph}` the command installed beside ours, `{recording}` a fresh path for what a profiler writes. The program and
its arguments are put in place of `{program}`, or at the end; `{script}` and `{arguments}` are its two halves, for
profilers that want something between them.
"""

import shlex
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BenchmarkError

BARE = "bare"
BARE_AGAIN = "bare again"
BARE_BRIEF = "bare, brief"
CPU_ONLY = "cpu only"
FULL = "full"
RECORD = "{tachograph} record --quiet --force --output {recording}"


@dataclass(frozen=True)
class Arm:
    """A name for the table, a command template, and the interpreter that runs the program.

    What a `peer` does with a program is a result, whatever it is; an arm of ours that fails ends the benchmark.
    """

    name: str
    template: str
    python: str = sys.executable
    peer: bool = False
    against: str = BARE
    """The arm that this one is compared with: the same program, bare, under the same interpreter."""
    brief: bool = False
    """Whether the program runs a third of the passes, and no pass before them, once: for what takes many times as long.

    Such an arm is compared with a bare one that is brief as well.
    """

    def command(self, program: list[str], recording: Path) -> list[str]:
        """The argument vector that runs `program` in this arm."""
        words = shlex.split(self.template)
        if not {"{program}", "{script}"} & set(words):
            words.append("{program}")
        known = {
            "{python}": [self.python],
            "{tachograph}": [str(Path(sysconfig.get_path("scripts")) / "tachograph")],
            "{program}": program,
            "{script}": program[:1],
            "{arguments}": program[1:],
        }
        folder = str(Path(self.python).parent)
        command: list[str] = []
        for word in words:
            command += known.get(word, [word.replace("{recording}", str(recording)).replace("{bin}", folder)])
        return command


def is_bare(name: str) -> bool:
    """Whether an arm of that name runs the program and nothing else."""
    return name.partition(",")[0] in (BARE, BARE_AGAIN)


def beside_bare(templates: Mapping[str, str]) -> list[Arm]:
    """Two bare arms, the second of which is the noise floor, then those of ``templates``, by name."""
    return [Arm(BARE, "{python}"), Arm(BARE_AGAIN, "{python}"), *(Arm(*each) for each in templates.items())]


def arms(others: list[str], peers: list[Arm] | None = None) -> list[Arm]:
    """Two bare arms, the second of which is the noise floor, then the given ones (NAME=TEMPLATE), or else tachograph's.

    `peers` come last.
    """
    chosen = beside_bare({} if others else {CPU_ONLY: f"{RECORD} --cpu-only", FULL: RECORD})
    for text in others:
        name, separator, template = text.partition("=")
        if not separator or not name or not template.strip() or name in {arm.name for arm in chosen}:
            raise BenchmarkError(f"--arm {text!r}: expected NAME=COMMAND, with a name of its own")
        chosen.append(Arm(name, template))
    return [*chosen, *(peers or [])]

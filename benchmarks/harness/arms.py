"""The arms of a comparison: ways to run the same program, each a command template.

A template is a shell-like command line. `{python}` is this interpreter, `{tachograph}` the command installed beside it,
`{recording}` a fresh path for what a profiler writes. The program and its arguments are put in place of `{program}`, or
at the end.
"""

import shlex
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BenchmarkError

BARE = "bare"
BARE_AGAIN = "bare again"
RECORDED = "tachograph"
_RECORD = "{tachograph} record --quiet --force --output {recording}"


@dataclass(frozen=True)
class Arm:
    """A name for the table and a command template."""

    name: str
    template: str

    def command(self, program: list[str], recording: Path) -> list[str]:
        """The argument vector that runs `program` in this arm."""
        known = {
            "{python}": sys.executable,
            "{tachograph}": str(Path(sysconfig.get_path("scripts")) / "tachograph"),
            "{recording}": str(recording),
        }
        words = [known.get(word, word) for word in shlex.split(self.template)]
        if "{program}" not in words:
            words.append("{program}")
        at = words.index("{program}")
        return [*words[:at], *program, *words[at + 1 :]]


def arms(others: list[str]) -> list[Arm]:
    """Two bare arms, the second of which is the noise floor, and the given ones (NAME=TEMPLATE), or else tachograph."""
    chosen = [Arm(BARE, "{python}"), Arm(BARE_AGAIN, "{python}")]
    for text in others or [f"{RECORDED}={_RECORD}"]:
        name, separator, template = text.partition("=")
        if not separator or not name or not template.strip() or name in {arm.name for arm in chosen}:
            raise BenchmarkError(f"--arm {text!r}: expected NAME=COMMAND, with a name of its own")
        chosen.append(Arm(name, template))
    return chosen

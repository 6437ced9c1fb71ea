"""How the cost of recording grows with the program: threads, depth of the stack, allocations, processes.

    python benchmarks/scaling.py                       # five rounds, about ten minutes
    python benchmarks/scaling.py --peers scalene,py-spy
    python benchmarks/scaling.py --quick               # one short round: does it work?

Bare, bare again (the noise floor), recorded without memory, recorded in full: interleaved as in `overhead.py`. The
programs are in programs/scaling.py; each does the same work, however many threads, frames or processes it has.
"""

from typing import Any

import click

from harness.comparison import compare, options
from programs.scaling import PROGRAMS


@click.command()
@options("scaling", rounds=5)
def main(**chosen: Any) -> None:
    """What recording costs programs that are large in one way."""
    compare("scaling", "scaling", list(PROGRAMS), **chosen)


if __name__ == "__main__":
    main()

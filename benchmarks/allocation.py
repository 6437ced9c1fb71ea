"""What recording costs loops that do little but allocate or copy: the worst programs for a recorder of memory.

    python benchmarks/allocation.py                    # nine rounds, about five minutes
    python benchmarks/allocation.py --quick            # one short round: does it work?

Bare, bare again (the noise floor), recorded without memory, recorded in full: interleaved as in `overhead.py`. The
loops are in programs/loops.py.
"""

from typing import Any

import click

from harness.comparison import compare, options
from programs.loops import PROGRAMS


@click.command()
@options("allocation", rounds=9)
def main(**chosen: Any) -> None:
    """What recording costs loops that allocate and copy."""
    compare("allocation", "loops", list(PROGRAMS), **chosen)


if __name__ == "__main__":
    main()

"""Address ranges that a program keeps out of its children (MADV_DONTFORK, as for buffers that a device writes to).

There a child has holes, which it may give back as if they were mapped, as Python's mmap objects do when they end. So
nothing of the recorder's is put into them. The native recorder sees the advice; the signal sampler, which has no
library in the program, compares what parent and child have mapped.
"""

from __future__ import annotations

from mmap import mmap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Range = tuple[int, int]
"""Its first byte, and the one behind its last."""

MOST_TRIES = 8


def holes_of_child(parent: int) -> list[Range]:
    """Ranges that process ``parent`` has mapped and this one, its child, has not; none where that cannot be read."""
    theirs, own = _mapped(f"{parent}"), sorted(_mapped("self"))
    holes = []
    for begin, end in theirs.difference(own):
        at = begin
        for taken_from, taken_to in own:
            if taken_to > at and taken_from < end:
                holes.append((at, taken_from))
                at = taken_to
        holes.append((at, end))
    return [(begin, end) for begin, end in holes if begin < end]


def mapped_outside(holes: Sequence[Range], make: Callable[[], mmap]) -> mmap:
    """What ``make`` maps, again until it lies in no hole; after some tries, where it lies then."""
    if not holes:
        return make()
    made: list[mmap] = []
    while True:
        before = _mapped("self")
        made.append(make())  # as long as the earlier ones lie there, this one lies elsewhere
        new = _mapped("self") - before
        in_hole = any(begin < to and at < end for begin, end in new for at, to in holes)
        if not in_hole or len(made) == MOST_TRIES:
            break
    for each in made[:-1]:
        each.close()
    return made[-1]


def _mapped(process: str) -> set[Range]:
    try:
        with open(f"/proc/{process}/maps", "rb") as file:
            lines = [line.split(None, 1)[0].split(b"-") for line in file]
    except OSError:
        return set()
    return {(int(begin, 16), int(end, 16)) for begin, end in lines}

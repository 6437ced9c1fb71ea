"""The chains that keep sampled blocks alive: those of the table ``referrers``, those that are alike as one.

A chain leads from a module or a running function to the object that a block belongs to. Of a site several blocks are
looked for; their chains differ in indices and keys as a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tachograph.format.arrays import ids, numbers
from tachograph.format.enumerations import ReferrerRole

from ...recording.call_tree import NOTHING, CallTree
from ...recording.frame import Frame
from ...recording.opened import Recording
from .heap import Heap

COLUMNS = ("process", "time_s", "file", "line", "function", "blocks", "bytes", "type", "holder", "example", "role")
"""Columns of the frame. ``blocks`` are those that were looked for, ``bytes`` their sizes; ``type`` is that of their
object, ``holder`` the chain with ``[...]`` for indices and keys, ``example`` one of them; both null without a chain."""

MAX_ROWS = 50

_ROOTS = (ReferrerRole.MODULE, ReferrerRole.FRAME)
_INDEX = re.compile(r"\[('.*?'|[^'].*?)\](?=$|[.\[ ])")


@dataclass(frozen=True, slots=True)
class _Link:
    place: int
    role: int
    type: str | None
    name: str | None


class _Alike(NamedTuple):
    """The parts that chains of one row have in common."""

    process: int
    time_s: float
    place: tuple[str | None, int | None, str | None]
    type: str | None
    holder: str | None
    role: int


def find_referrers(recording: Recording, heap: Heap, tree: CallTree, charged: Sequence[int]) -> Frame | None:
    """The chains of the last search of each process in the heap's window; None where none was asked for.

    ``charged`` has for each node of the tree the one whose line its memory is charged to.
    """
    if not recording.recorded("referrers"):
        return None
    chains: dict[tuple[int, int, int], list[_Link]] = {}
    blocks: dict[tuple[int, int, int], tuple[int, int]] = {}
    columns = ("time_ns", "process", "chain", "link", "role", "type", "name", "size_bytes", "stack")
    for batch in recording.batches("referrers", columns):
        values = [numbers(batch.column(name)).tolist() for name in ("time_ns", "process", "chain", "link", "role")]
        texts = [batch.column(name).to_pylist() for name in ("type", "name")]
        sizes, stacks = numbers(batch.column("size_bytes")).tolist(), ids(batch.column("stack")).tolist()
        for time_ns, process, chain, link, role, type_, name, size, stack in zip(
            *values, *texts, sizes, stacks, strict=True
        ):
            if not heap.present[process] or not heap.start_ns <= time_ns <= heap.end_ns:
                continue
            key = process, time_ns, chain
            chains.setdefault(key, []).append(_Link(link, role, type_, name))
            blocks[key] = size, stack
    last = {process: time_ns for process, time_ns, _ in sorted(chains)}
    rows = [
        ((key[1] - heap.zero_ns) / 1e9, key[0], *blocks[key], sorted(links, key=lambda link: link.place))
        for key, links in sorted(chains.items())
        if key[1] == last[key[0]]
    ]
    return Frame.of_rows(list(_alike(rows, tree, charged))[:MAX_ROWS], COLUMNS)


def _alike(
    rows: Sequence[tuple[float, int, int, int, list[_Link]]], tree: CallTree, charged: Sequence[int]
) -> Iterator[tuple[object, ...]]:
    """One row for the chains of a line that are alike, in the order in which they were searched."""
    groups: dict[_Alike, list[tuple[int, str | None]]] = {}
    for time_s, process, size, stack, links in rows:
        node = NOTHING if stack < 0 else int(charged[stack])
        node = stack if node == NOTHING else node
        place = (None, None, None) if node < 0 else _place(tree, node)
        found = links[0].role in _ROOTS
        text = chain_text(links) if found else None
        holder = None if text is None else _INDEX.sub("[...]", text)
        key = _Alike(process, time_s, place, links[-1].type if found else None, holder, links[0].role)
        groups.setdefault(key, []).append((size, text))
    for key, blocks in groups.items():
        file, line, function = key.place
        size, role = sum(size for size, _ in blocks), _ROLES.get(key.role, "unknown")
        yield (
            *(key.process, key.time_s, file, line, function, len(blocks), size),
            *(key.type, key.holder, blocks[0][1], role),
        )


_ROLES = {role.value: role.name.lower() for role in ReferrerRole}


def _place(tree: CallTree, node: int) -> tuple[str | None, int | None, str | None]:
    file, line, function = int(tree.file[node]), int(tree.line[node]), int(tree.function[node])
    return (
        None if file == NOTHING else tree.paths[file],
        None if line == NOTHING else line,
        None if function == NOTHING else tree.function_names[function],
    )


def chain_text(links: Sequence[_Link]) -> str:
    """A chain as Python would write it, as far as the names are known; else with the types of objects."""
    root = links[0]
    text = f"{root.name}" if root.role == ReferrerRole.MODULE else f"{root.name} in {root.type}()"
    before = root.place
    for link in links[1:]:
        if link.place - before > _HIDDEN:
            text += " ... "
        before = link.place
        if link.name is not None:
            text += link.name
        elif link.role == ReferrerRole.OBJECT and not (root.role == ReferrerRole.FRAME and link.place == 1):
            text += f" > {link.type}"
    return text


_HIDDEN = 2
"""Places from a link to the next where the dict of an object lies between, which is no link of its own."""

__all__ = ["COLUMNS", "chain_text", "find_referrers"]

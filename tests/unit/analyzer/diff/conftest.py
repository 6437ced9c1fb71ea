from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unit.analyzer.recordings import Builder

SOURCE = """\
import x


def f(items):
    for item in items:
        work(item)
    return sorted(items)


f(x.items)
"""
WORK, SORT, CALL = 6, 7, 10
"""Lines of SOURCE."""

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes a recording of SOURCE (or of an edited ``source``) with samples by line: ``make("a", {6: 100})``."""
    return maker(tmp_path)


def maker(folder: Path) -> Make:
    """What ``make`` is, in a folder."""

    def write(
        name: str,
        samples: dict[int, int],
        *,
        source: str | None = SOURCE,
        path: str = "/srv/a/app.py",
        function: str = "f",
        waits: dict[int, float] | None = None,
        allocated: dict[int, int] | None = None,
        mean: int = 1,
        counted: int | None = None,
        **options: Any,
    ) -> Path:
        builder = Builder(folder / f"{name}.tacho", **options)
        file = builder.file(path, source)
        lines = (source or SOURCE).split("\n")
        first = next((n for n, line in enumerate(lines, 1) if line.startswith("def ")), 4)
        call = next((n for n, line in enumerate(lines, 1) if line.startswith(f"{function}(")), CALL)
        main, f = builder.code(file, "<module>"), builder.code(file, function, first)

        def stack(line: int) -> int:
            return builder.stack((main, call - 1), *([(f, line - first)] if line != call else []))

        for line, count in samples.items():
            node = stack(line) if count else None
            for _ in range(count):
                builder.cpu(node)
        for line, seconds in (waits or {}).items():
            builder.wait(stack(line), 0, seconds * 1000)
        for line, size in (allocated or {}).items():
            builder.block(stack(line), size, 10, mean=mean)
        if allocated:
            held = sum(allocated.values()) if counted is None else counted
            builder.memory("start", 0, 0)
            builder.memory("end", 9000, held, obj_allocated_bytes=held)
        return builder.write()

    return write

"""Native functions in the page: where a line spends its time and waits, and in a diff; in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import write_page
from tachograph.analyzer.diff import diff
from tachograph.analyzer.render.html.diff_page import write
from tachograph.format.enumerations import NativePath
from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder

EVIL = "</script><script>window.stolen = 1</script>"
SOURCE = "import net\n\nnet.fetch(size)\n"
CYTHON = "__pyx_f_3net_5_core_6Socket_fetch"


def build(path: Path, *, fetch: int, parse: int) -> Path:
    """Line 3 has so many samples of 10 ms in each of two functions, and waits for 3 s in the first one."""
    builder = Builder(path)
    line = builder.stack((builder.code(builder.file("/srv/app/main.py", SOURCE), "<module>"), 2))
    module = builder.module("/v/site-packages/net/_core.so")
    place = {"function_source": f"src/{EVIL}/core.pyx", "function_line": 42}
    frames = {
        symbol: builder._add("native_frames", module=module, offset=number + 500, symbol=symbol, **place)
        for number, symbol in enumerate((CYTHON, "parse<int>(int)", f"hidden{EVIL}"))
    }
    loop = builder.native_stack(None, PYTHON_FRAME, line)
    inside = builder.native_stack(loop, frames[CYTHON])
    whole = {"native_path": NativePath.WHOLE}
    at = 0
    for symbol, count in ((CYTHON, fetch), ("parse<int>(int)", parse), (f"hidden{EVIL}", 5)):
        for _ in range(count):
            at += 10
            stack = loop if symbol == CYTHON else inside
            builder.cpu(line, time_ns=START + at * MS, native_frame=frames[symbol], native_stack=stack, **whole)
    builder.memory("start", 0, 0)
    builder.block(line, 50_000_000, 1_000, native_frame=frames["parse<int>(int)"], native_stack=inside, **whole)
    builder.memory("end", 9_500, 50_000_000, obj_allocated_bytes=50_000_000, resident_bytes=60_000_000)
    recv = builder.native_frame(builder.module("/lib/libc.so.6"), "recv")
    builder.wait(line, 6_000, 9_000, native_frame=recv, native_stack=inside, **whole)
    return builder.write()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("native")
    return build(folder / "a.tacho", fetch=100, parse=200), build(folder / "b.tacho", fetch=100, parse=350)


def test_the_drawer_names_functions_that_ran_and_that_waited(
    recordings: tuple[Path, Path], visit: Callable[..., Any], tmp_path: Path
) -> None:
    page = visit(write_page(recordings[0], tmp_path / "page.html"), viewport={"width": 700, "height": 800})
    page.locator("#lines tr.row").first.click()
    ran = [
        text.split() for text in page.locator("table.natives:not(.waiters):not(.allocators) tbody tr").all_inner_texts()
    ]
    assert ran[:2] == [
        ["parse<>", "net/_core", "core.pyx:42", "2.00", "s"],
        ["Socket.fetch", "net/_core", "core.pyx:42", "1.00", "s"],
    ]
    (waited,) = page.locator("table.waiters tbody tr").all_inner_texts()
    assert waited.split() == ["Socket.fetch", "net/_core", "core.pyx:42", "3.00", "s"]
    title = page.locator("table.waiters tbody td").first.get_attribute("title")
    assert title == f"net._core.Socket.fetch\nsrc/{EVIL}/core.pyx:42"
    assert page.evaluate("window.stolen") is None
    (allocated,) = page.locator("table.allocators tbody tr").all_inner_texts()
    assert allocated.split()[:3] == ["Socket.fetch", "net/_core", "core.pyx:42"]
    # All of it is in sight.
    box, seen = page.locator(".detailbox").bounding_box(), page.locator("#lines .scroll").bounding_box()
    assert box["x"] + box["width"] <= seen["x"] + seen["width"] + 1


def test_names_of_c_plus_plus_are_shortened_to_their_ends(visit: Callable[..., Any], tmp_path: Path) -> None:
    """Names that are longer than a page holds are cut, perhaps within their arguments."""
    builder = Builder(tmp_path / "long.tacho")
    line = builder.stack((builder.code(builder.file("/srv/app/main.py", SOURCE), "<module>"), 2))
    library = builder.module("/v/site-packages/net/_core.so")
    inner, long = (f"ns::{name}<{'int, ' * count}int>::run(int)" for name, count in (("whole", 100), ("cut", 1_000)))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, line), builder.native_frame(library, long))
    frame = builder.native_frame(library, inner)
    for at in range(0, 500, 10):
        values = {"native_frame": frame, "native_stack": path, "native_path": NativePath.WHOLE}
        builder.cpu(line, time_ns=START + at * MS, **values)
    page = visit(write_page(builder.write(), tmp_path / "page.html"))
    shown = page.locator(".flame").inner_text()
    assert "ns::whole<>::run" in shown.split()
    assert "ns::cut<>" in shown.split()


def test_a_diff_has_a_table_of_native_functions(
    recordings: tuple[Path, Path], visit: Callable[..., Any], tmp_path: Path
) -> None:
    write(diff([recordings[0]], [recordings[1]], spread=0.01), str(tmp_path / "diff.html"))
    page = visit(tmp_path / "diff.html")
    rows = page.locator("#native tbody tr").all_inner_texts()
    assert rows[0].split()[:4] == ["+1.50", "s", "2.00", "s"]
    assert "parse" in rows[0]
    assert "slower" in rows[0]
    assert page.evaluate("window.stolen") is None

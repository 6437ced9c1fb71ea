"""A recording whose every number is known, built by hand: what the pages of these tests show."""

from __future__ import annotations

from pathlib import Path

from unit.analyzer.recordings import MS, NATIVE_FRAME, START, Builder

MAIN = "/srv/app/main.py"
LIBRARY = "/usr/lib/python3.13/site-packages/lib/fast.py"
SOURCE = """import lib

def early(items):
    for item in items:
        yield item * 2  # hot at first

def late(items):
    return lib.fast(items)  # hot later

def cache(key, value):
    KEPT[key] = bytes(value)  # is never emptied

def pause():
    lib.wait()

main()
"""

EVIL = "</script><script>window.stolen = 1</script><img src=x onerror='window.stolen=2'>\u202e\"'&"


def build(path: Path, *, evil: bool = False) -> Path:
    """Ten seconds: line 5 works in the first half (Python), line 8 through a library in the second (native).

    Line 5 has 4 s of CPU, line 8 has 3 s (of which the kernel's part is 1 s), line 14 waits 2 s in the main thread.
    Line 11 allocates a megabyte every 100 ms and keeps it. Line 8 copies 10 MB at 6.5 s. Each half is a span; in the
    second lies one from 6.1 s to 7.1 s.
    The GPU is busy while line 14 waits, and holds 2 GB from then on.
    """
    builder = Builder(path)
    name = EVIL if evil else "main"
    main = builder.file(f"/srv/{EVIL}.py" if evil else MAIN, SOURCE + (f"# {EVIL}\n" if evil else ""))
    library = builder.file(LIBRARY, "def fast(x):\n    return x\n")
    module = builder.code(main, "<module>")
    early, late, cache, pause = (
        builder.code(main, f"{name}.{function}" if evil else function, line)
        for function, line in (("early", 3), ("late", 7), ("cache", 10), ("pause", 13))
    )
    fast = builder.code(library, "fast")
    root = (module, 15)
    hot_early = builder.stack(root, (early, 2))
    hot_late = builder.stack(root, (late, 1), (fast, 1))
    keeping = builder.stack(root, (cache, 1))
    waiting = builder.stack(root, (pause, 1))
    for number in range(400):
        builder.cpu(hot_early, time_ns=START + (number + 1) * 10 * MS)
    for number in range(300):
        builder.cpu(
            hot_late, time_ns=START + (6000 + (number + 1) * 10) * MS, native_frame=NATIVE_FRAME,
            system_ns=10 * MS if number % 3 == 0 else 0,
        )  # fmt: skip
    builder.wait(waiting, 4000, 6000)
    worker = builder.thread(EVIL if evil else "worker")
    builder.cpu(None, thread=worker, time_ns=START + 9_500 * MS)
    builder.memory("start", 0, 0)
    for number in range(100):
        builder.block(keeping, 1_000_000, number * 100 + 50)
    for ms in (5_000, 9_900):
        builder.memory_part("heap", ms, 120_000_000)
        builder.memory_part("files", ms, 12_000_000, anonymous_bytes=2_000_000)
    builder.memory("end", 10_000, 100_000_000, obj_allocated_bytes=100_000_000)
    builder.copy(hot_late, 10_000_000, 6_500)
    builder.span("first half", 0, 5_000)
    builder.span("second half", 5_000, 10_000)
    builder.span(EVIL if evil else "inner", 6_105, 7_105)
    for ms in range(100, 10_100, 100):
        builder.gpu(ms, 90 if 4000 < ms <= 6000 else 0, ms - 100)
        builder.gpu(ms, None, memory_bytes=2_000_000_000 if ms > 4000 else 0, power_mw=200_000)
    builder.rows["gpu_devices"][0]["name"] = EVIL if evil else "A GPU"
    return builder.write()

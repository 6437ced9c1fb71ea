"""Interrupt a program's code and judge the unwinder's paths: ``walks.py JUDGE SUBJECTS NAME``, one JSON object out.

NAME is ``interrupt:CODE``, ``step:CODE`` or, for a debugger to judge, ``watch:CODE:SAMPLES``.

``agree``: whole and the same as the judge's to the last frame; ``wrong``: said to be whole (or, between instructions,
anything but torn) and another path; ``misled``: moments of which libgcc cannot judge (judge.cpp); ``others``: by state,
what is neither; ``leaves``: different program counters.
"""

import collections
import contextlib
import ctypes
import hashlib
import importlib
import io
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

MOST = 120
PATHS = ("unrecorded", "whole", "guessed", "truncated", "torn")
SECONDS = 1.5
ENOUGH, LONGEST = 600, 40  # samples, and seconds in which a busy machine comes to so many
Callback = ctypes.CFUNCTYPE(None)


class Walked(ctypes.Structure):
    """A path: program counters and CFAs, the innermost frame first."""

    _fields_ = (("count", ctypes.c_uint32), ("pcs", ctypes.c_uint64 * MOST), ("cfas", ctypes.c_uint64 * MOST))

    def frames(self, count: int | None = None) -> list[tuple[int, int]]:
        """Program counters with CFAs, the last without one."""
        count = self.count if count is None else min(count, self.count)
        cfas = [*self.cfas[: max(count - 1, 0)], 0]
        return list(zip(self.pcs[:count], cfas, strict=False))


class Sample(ctypes.Structure):
    """One moment, as both saw it."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("path", "to_root", "misleads")),
        *((name, Walked) for name in ("ours", "theirs")),
    )


class DynamicInfo(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    )


judge = ctypes.PyDLL(sys.argv[1])
judge.judge_samples.restype = ctypes.POINTER(Sample)


def library(pc: int) -> str:
    """The file that an address is in."""
    info = DynamicInfo()
    ctypes.CDLL(None).dladdr(ctypes.c_void_p(pc), ctypes.byref(info))
    return (info.file or b"").decode()


def samples(count: int) -> list[Sample]:
    taken: list[Sample] = judge.judge_samples()[:count]
    return taken


def summary(agree: int, wrong: int, others: collections.Counter[str], taken: list[Sample]) -> dict[str, Any]:
    return {"agree": agree, "wrong": wrong, "others": others, "leaves": len({sample.ours.pcs[0] for sample in taken})}


def interrupt(body: Callable[[], object], *, both: bool = True) -> dict[str, Any]:
    """At random moments, beside libgcc's unwinder."""
    body()
    judge.judge_refresh()
    judge.judge_start(150, int(both))
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < SECONDS or (judge.judge_count() < ENOUGH and now < LONGEST):
        body()
    taken = samples(judge.judge_stop())
    agree = wrong = 0
    others: collections.Counter[str] = collections.Counter()
    for sample in taken:
        path = PATHS[sample.path]
        if path == "whole" and sample.to_root and sample.ours.frames() == sample.theirs.frames():
            agree += 1
        elif path == "whole" and both:
            wrong += 1
        else:
            others[f"{path}, {'rows' if sample.to_root else 'no rows'}"] += 1
    return summary(agree, wrong, others, taken) | {"misled": judge.judge_misled()}


def watch(body: Callable[[], object], wanted: int) -> dict[str, Any]:
    """At random moments, while a debugger looks at each (``gdb_walks.py``)."""
    body()
    judge.judge_refresh()
    judge.judge_start(150, 0)
    end = time.monotonic() + 300
    while judge.judge_count() < wanted and time.monotonic() < end:
        body()
    return {"taken": judge.judge_stop()}


def step(body: Callable[[], object], every: int = 1) -> dict[str, Any]:
    """Between instructions, beside the calls that were made and have not returned."""
    judge.judge_refresh()
    taken = samples(judge.judge_step(body, every))
    agree = wrong = 0
    others: collections.Counter[str] = collections.Counter()
    beyond = set()
    for sample in taken:
        path, known = PATHS[sample.path], sample.theirs.count
        same = sample.ours.frames(known)[: known - 1] == sample.theirs.frames()[: known - 1]
        if path == "whole" and same:
            agree += 1
            beyond.add(tuple(sample.ours.pcs[known : sample.ours.count]))
        elif path == "whole" and "libgcc_s" not in library(sample.ours.pcs[0]):  # it rewrites its own frame
            wrong += 1
        else:
            others[f"{path}, {'right' if same else 'wrong'}"] += 1
    assert len(beyond) == 1, "outside of what is stepped through all paths are one"
    return summary(agree, wrong, others, taken)


def pure() -> None:
    sum(i * i for i in range(2000))
    sorted([3, 1, 2] * 50, key=lambda value: -value)


def standard() -> None:
    data = {"a": [1.5, 2.25, "x" * 50] * 20}
    json.loads(json.dumps(data))
    re.sub(r"(a+)b", "x", "aab" * 100)
    with open("/proc/self/stat", "rb") as file:
        file.read()
    hashlib.sha256(b"z" * 100_000)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 200)


def with_numpy(np: Any) -> Callable[[], None]:
    array, texts = np.random.rand(300, 300), np.array(["a", "bb"] * 100)

    def body() -> None:
        np.sort(array, axis=1)
        np.exp(array)
        (array * 2 + 1).astype("f4")
        np.unique(np.arange(1000) % 7)
        np.char.upper(texts)
        np.einsum("ij,jk->ik", array[:20, :20], array[:20, :20])
        np.apply_along_axis(lambda row: row.sum(), 1, array[:20])

    return body


def with_openblas(np: Any) -> Callable[[], None]:
    array = np.random.rand(200, 200)

    def body() -> None:
        array @ array
        np.linalg.inv(array)
        np.linalg.eigh(array[:50, :50])

    return body


def with_pandas(pd: Any) -> Callable[[], None]:
    frame = pd.DataFrame({"k": [i % 50 for i in range(5000)], "v": [i * 0.37 % 1 for i in range(5000)]})

    def body() -> None:
        frame.groupby("k").v.agg(["mean", "std"])
        frame.sort_values("v")
        frame.merge(frame.head(100), on="k")

    return body


def with_pyarrow(arrow: Any) -> Callable[[], None]:
    compute, parquet = importlib.import_module("pyarrow.compute"), importlib.import_module("pyarrow.parquet")
    arrow.set_cpu_count(1)
    table = arrow.table({"a": list(range(5000)), "s": [f"x{i}" for i in range(5000)]})

    def body() -> None:
        buffer = io.BytesIO()
        parquet.write_table(table, buffer, compression="zstd")
        buffer.seek(0)
        parquet.read_table(buffer, use_threads=False)
        compute.sort_indices(table["s"])
        with contextlib.suppress(arrow.ArrowInvalid):  # a C++ exception, on its way
            compute.cast(table["s"], "int64")

    return body


def with_greenlets(greenlet: Any) -> Callable[[], None]:
    def body() -> None:
        main = greenlet.getcurrent()

        def run() -> None:
            for _ in range(30):
                main.switch()
                sorted([1, 2, 3] * 20, key=lambda value: -value)

        children = [greenlet.greenlet(run) for _ in range(5)]
        for _ in range(31):
            for child in children:
                child.switch()

    return body


def recursive() -> None:
    def down(depth: int) -> int:
        return 1 + down(depth - 1) if depth else max([1, 2], key=lambda value: -value)

    down(40)
    list(map(abs, (down(3) for _ in range(5))))
    with contextlib.suppress(ZeroDivisionError):
        sorted([1, 0, 2], key=lambda value: 1 // value)


def main(name: str) -> dict[str, Any]:
    subjects = ctypes.CDLL(sys.argv[2])
    kind, _, rest = name.partition(":")
    rest, _, wanted = rest.partition(":")
    if kind == "watch" and hasattr(subjects, f"subject_{rest}"):
        return watch(getattr(subjects, f"subject_{rest}"), int(wanted))
    if kind == "step" and hasattr(subjects, f"subject_{rest}"):
        return step(getattr(subjects, f"subject_{rest}"))
    if name == "interrupt:subjects":
        names = ("library", "exceptions", "tail_calls", "realigned", "lent_frame")  # the last on aarch64 alone
        functions = [getattr(subjects, f"subject_{each}") for each in names if hasattr(subjects, f"subject_{each}")]
        return interrupt(lambda: [function() for function in functions])
    if name == "step:python":
        return step(Callback(lambda: (sorted([3, 1, 2], key=lambda value: -value), None)[1]), 3)
    if name == "step:numpy":
        np = importlib.import_module("numpy")
        array = np.random.rand(16, 16)
        return step(Callback(lambda: (np.sort(array), np.exp(array), array @ array, None)[-1]), 5)
    plain = {"pure": pure, "standard": standard, "recursive": recursive}.get(rest)
    if plain is not None:
        return watch(plain, int(wanted)) if kind == "watch" else interrupt(plain)
    module = {"openblas": "numpy"}.get(rest, rest)
    body = {
        "numpy": with_numpy, "openblas": with_openblas, "pandas": with_pandas, "pyarrow": with_pyarrow,
        "greenlet": with_greenlets,
    }[rest](importlib.import_module(module))  # fmt: skip
    if kind == "watch":
        return watch(body, int(wanted))
    return interrupt(body, both=rest != "greenlet")  # libgcc follows a stack that is being exchanged into nowhere


judge.judge_open()
print(json.dumps(main(sys.argv[3])))

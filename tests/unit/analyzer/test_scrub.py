"""What scrubbing removes is gone from every byte, and what it keeps gives the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import tachograph.analyzer
from tachograph.analyzer import Recording
from tachograph.analyzer.exports.scrub import make_request, scrub
from tachograph.format import FormatError
from unit.analyzer.recordings import MS, NATIVE_FRAME, START, Builder, table

SECRETS = (
    "secretpath",
    "SecretName",
    "secret_thread",
    "secret_symbol",
    "secret_source",
    "secret-argv",
    "secret-resource",
    "secret-host",
    "secret-task",
    "secret-label",
)
TIMES = ("cpu_s", "python_s", "native_s", "kernel_s", "unknown_s", "wait_s", "total_cpu_s", "total_wait_s")


@pytest.fixture
def made(builder: Builder) -> Builder:
    app = builder.file("/home/secretpath/app.py", "secret_source = 1\n" * 60)
    library = builder.file("/home/secretpath/lib/python3.13/site-packages/secretpath.py", "secret_source")
    builder.file("/home/secretpath/unused.py", "secret_source")
    main, work = builder.code(app, "<module>", 1), builder.code(app, "SecretName.work", 10)
    inside = builder.code(library, "SecretName", 1)
    other = builder.thread("secret_thread")
    builder.rows["processes"][0]["resource"] = '{"service.name": "secret-resource"}'
    builder.rows["modules"][1]["path"] = "/home/secretpath/_fast.so"
    builder.rows["native_frames"][2]["symbol"] = "secret_symbol"
    first = builder.stack((main, 2), (work, 3, "secret-task"), (inside, 4))
    builder.cpu(first, 10)
    builder.cpu(builder.stack((main, 2), (work, 5)), 30, native_frame=NATIVE_FRAME)
    builder.cpu(builder.stack((main, 6)), 20, thread=other)
    builder.cpu(None, 4, stack_state=2)
    builder.wait(first, 5, 105)
    builder.wait(builder.stack((main, 7)), 10, 60, thread=other)
    builder.quality = [{"process": 0, "loss": "stacks_torn", "count": 1}]
    builder.parameters = {"interval_ns": 10 * MS, "waits": True, "from": "secretpath"}
    return builder


@pytest.fixture
def scrubbed(made: Builder, tmp_path: Path) -> Callable[..., Recording]:
    """Scrubs what was made and opens the result."""

    def scrubbed(**request: Any) -> Recording:
        if not made.path.exists():
            made.write()
            manifest = json.loads((made.path / "manifest.json").read_text("utf-8"))
            manifest |= {
                "argv": ["secret-argv"],
                "host": "secret-host",
                "os": "Linux 6.1-secret-host",
                "new": "secretpath",
                "labels": {"service.name": "secret-label", "rank": "3"},
            }
            (made.path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
        target = tmp_path / f"scrubbed-{len(list(tmp_path.iterdir()))}.tacho"
        with Recording.open(made.path) as recording:
            scrub(recording, make_request(recording, **request), target)
        return tachograph.analyzer.open(target)

    return scrubbed


def everything(recording: Recording) -> str:
    """All that a recording holds, as text."""
    tables = [recording.table(name).to_pylist() for name in recording.specification.tables if recording.recorded(name)]
    return repr(tables) + (recording.path / "manifest.json").read_text("utf-8")


def test_what_is_dropped_is_gone(scrubbed: Callable[..., Recording], made: Builder) -> None:
    result = scrubbed()
    text = everything(result)
    assert [secret for secret in SECRETS if secret in text] == []
    original = everything(tachograph.analyzer.open(made.path))
    assert [secret for secret in SECRETS if secret not in original] == []


@pytest.mark.parametrize(
    ("what", "gone"),
    [
        ("sources", {"secret_source"}),
        ("argv", {"secret-argv"}),
        ("host", {"secret-host", "secret-resource"}),
        ("labels", {"secret-label", "secret-resource"}),
        ("names", {"SecretName", "secret_thread", "secret_symbol", "secret-task"}),
        ("paths", {"secretpath"}),
    ],
)
def test_each_is_dropped_by_itself(scrubbed: Callable[..., Recording], what: str, gone: set[str]) -> None:
    text = everything(scrubbed(drop=[what]))
    # What the format does not describe (a key of a newer version, say) cannot be judged and is never copied.
    assert {secret for secret in SECRETS if secret not in text} == gone


@pytest.mark.parametrize("scope", ["project", "all"])
def test_the_figures_stay_the_same(scrubbed: Callable[..., Recording], made: Builder, scope: str) -> None:
    result = scrubbed().profile(scope=scope)
    original = tachograph.analyzer.open(made.path).profile(scope=scope)
    assert table(result.lines, "line", *TIMES) == table(original.lines, "line", *TIMES)
    assert table(result.threads, "tid", "main", "cpu_s") == table(original.threads, "tid", "main", "cpu_s")
    assert result.totals == original.totals
    assert result.lines["source"].notna().sum() == 0
    assert result.quality.losses == original.quality.losses


def test_names_and_paths_are_replaced_and_not_mixed_up(scrubbed: Callable[..., Recording]) -> None:
    result = scrubbed(drop=["names", "paths"])
    functions = result.functions(scope="all")
    assert functions["function"][functions["file_id"] >= 0].tolist() == ["function_1", "<module>", "function_2"]
    assert set(result.table("files").column("path").to_pylist()) == {
        "/scrubbed/file_0.py",
        "/scrubbed/lib/python3.0/site-packages/file_1.py",
    }
    assert result.threads()["name"].tolist() == ["MainThread", "thread_1"]
    assert result.table("processes").column("executable").to_pylist() == ["/scrubbed/bin/python"]
    symbols = result.table("native_frames").column("symbol").to_pylist()
    assert symbols == ["_PyEval_EvalFrameDefault", "symbol_1"]


def test_what_nothing_refers_to_is_left_out(scrubbed: Callable[..., Recording], made: Builder) -> None:
    result = scrubbed(drop=["argv"])
    assert result.rows("files") == 2
    assert result.rows("native_frames") == 2
    assert result.table("modules").column("path").to_pylist() == ["/usr/bin/python3.13", "/home/secretpath/_fast.so"]
    assert len(made.rows["files"]) == 3


def test_a_window_answers_as_the_window_of_the_original(scrubbed: Callable[..., Recording], made: Builder) -> None:
    result = scrubbed(drop=[], start_s=0.01, end_s=0.03)
    original = tachograph.analyzer.open(made.path).profile(scope="all", window=(0.01, 0.03))
    shown = result.profile(scope="all")
    assert table(shown.lines, "file", "line", *TIMES) == table(original.lines, "file", "line", *TIMES)
    assert (shown.totals.wall_s, shown.totals.cpu_s) == (original.totals.wall_s, original.totals.cpu_s) == (0.02, 0.05)
    assert (result.start_ns, result.end_ns) == (START + 10 * MS, START + 30 * MS)
    assert shown.totals.clock_cpu_s is None
    # The library's function was sampled and waited in before and after; it also waited in the window.
    assert result.waits["start_ns"].tolist() == [START + 10 * MS] * 2
    assert result.waits["off_cpu_ns"].tolist() == [20 * MS] * 2


def test_a_thread_is_kept_with_what_it_needs_and_no_more(scrubbed: Callable[..., Recording]) -> None:
    result = scrubbed(drop=[], thread="secret*")
    assert result.table("threads").column("name").to_pylist() == ["secret_thread"]
    assert result.cpu["cpu_ns"].tolist() == [20 * MS]
    assert result.waits["off_cpu_ns"].tolist() == [50 * MS]
    assert result.table("codes").column("qualname").to_pylist() == ["<module>"]
    assert "SecretName" not in everything(result)


def test_threads_that_share_their_time_stay_together(builder: Builder, tmp_path: Path) -> None:
    builder.sampler = builder.rows["processes"][0]["sampler"] = "signal"
    stack = builder.stack((builder.code(builder.file("a.py")), 0))
    for thread in (0, builder.thread("other")):
        builder.cpu(stack, 10, thread=thread, origin=2 + thread, time_ns=START)
    with Recording.open(builder.write()) as recording:
        with pytest.raises(FormatError, match="none of them can be kept without the others"):
            make_request(recording, thread="main")
        scrub(recording, make_request(recording, process=["100"]), tmp_path / "whole.tacho")
    assert tachograph.analyzer.open(tmp_path / "whole.tacho").threads()["cpu_s"].tolist() == [0.005, 0.005]


def test_waiting_that_was_left_out_is_unknown(scrubbed: Callable[..., Recording]) -> None:
    totals = scrubbed(drop=[], without=["waits"]).profile().totals
    assert totals.wait_s is None
    assert totals.cpu_s == 0.064


def test_the_manifest_says_what_was_removed(scrubbed: Callable[..., Recording], made: Builder) -> None:
    result = scrubbed(drop=["argv", "host"], without=["waits"], start_s=0)
    assert result.manifest.extra == {
        "scrubbed": {
            "dropped": ["argv", "host"],
            "without": ["waits"],
            "window_s": [0.0, 10.0],
            "only_some_threads": False,
            "only_some_processes": False,
        }
    }
    assert result.manifest.notes == [
        "this recording was scrubbed: without argv, host; without waits; only a part of the time"
    ]
    assert result.manifest.uuid != Recording.open(made.path).manifest.uuid
    for path in result.path.glob("*.parquet"):
        assert pq.read_metadata(path).metadata[b"tachograph.uuid"].decode() == result.manifest.uuid
    assert result.manifest.os == "Linux"


def test_nothing_is_overwritten_and_nothing_is_done_for_nothing(
    scrubbed: Callable[..., Recording], made: Builder, tmp_path: Path
) -> None:
    result = scrubbed()
    with Recording.open(made.path) as recording:
        with pytest.raises(FormatError, match="exists already"):
            scrub(recording, make_request(recording), result.path)
        with pytest.raises(FormatError, match="nothing to remove"):
            make_request(recording, drop=[])
        with pytest.raises(FormatError, match=r"no process has the id or the name '7'; there are: .* \(100\)"):
            make_request(recording, process=["7"])
        with pytest.raises(FormatError, match="cannot write"):
            scrub(recording, make_request(recording), tmp_path / "missing" / "run.tacho")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_counters_of_memory_start_anew_in_a_window(scrubbed: Callable[..., Recording], made: Builder) -> None:
    made.parameters["memory"] = True
    made.rows["memory"] = [
        _counters(0, 1000, native_allocated_bytes=1000),
        _counters(50, 5000, native_allocated_bytes=6000, native_freed_bytes=2000),
        _counters(150, 6500, native_allocated_bytes=1000, obj_allocated_bytes=500),
        _counters(200, 6000, native_freed_bytes=500),
    ]
    made.rows["allocations"] = [_block(40, 60), _block(110, 160), _block(120, 300), _block(180, None)]
    result = scrubbed(drop=[], start_s=0.1, end_s=0.18)
    memory = result.memory
    # From the reading before the window to the one after it.
    assert memory["footprint_bytes"].tolist() == [5000, 6500, 6000]
    assert memory["event"].tolist() == ["start", "threshold", "threshold"]
    assert memory["native_allocated_bytes"].tolist() == [5000, 1000, 0]
    assert memory["native_freed_bytes"].tolist() == [0, 0, 500]
    assert memory["obj_allocated_bytes"].tolist() == [0, 500, 0]
    assert (result.start_ns, result.end_ns) == (START + 50 * MS, START + 200 * MS + 1)
    assert result.manifest.extra["scrubbed"]["window_s"] == [0.05, 0.200000001]
    blocks = result.allocations
    assert ((blocks["time_ns"] - START) // MS).tolist() == [110, 120, 180]
    assert blocks["freed_ns"].isna().tolist() == [False, True, True]


def test_memory_goes_where_only_some_threads_are_kept(scrubbed: Callable[..., Recording], made: Builder) -> None:
    made.parameters["memory"] = True
    made.rows["memory"] = [_counters(0, 1000, native_allocated_bytes=1000)]
    result = scrubbed(drop=[], thread="main")
    assert not result.recorded("memory")
    assert result.manifest.parameters["memory"] is False


def test_spans_are_cut_and_their_texts_replaced(scrubbed: Callable[..., Recording], made: Builder) -> None:
    made.rows["spans"] = [
        _span(0, "early", 0, 5),
        _span(1, "SecretName", 0, 25, fields='{"n": "secretpath"}'),
        _span(2, "late", 20, None, parent=1),
        _span(3, "other thread", 12, 14, thread=1),
        _span(4, "SecretName", 30, 40),
    ]
    result = scrubbed(drop=["names"], thread="main", start_s=0.01, end_s=0.03)
    spans = result.frame("spans")
    assert spans["span"].tolist() == [0, 1]
    assert spans["parent"].tolist() == [pd.NA, 0]
    assert spans["name"].tolist() == ["span_0", "span_1"]
    assert spans["fields"].isna().all()
    assert ((spans["start_ns"] - START) // MS).tolist() == [10, 20]
    assert ((spans["end_ns"] - START) // MS).tolist() == [25, pd.NA]


def _span(span: int, name: str, start: int, end: int | None, **values: Any) -> dict[str, Any]:
    end_ns = None if end is None else START + end * MS
    row = {"span": span, "process": 0, "thread": 0, "name": name, "start_ns": START + start * MS, "end_ns": end_ns}
    return row | values


def _counters(ms: int, footprint: int, **flows: int) -> dict[str, Any]:
    domains = ("native", "mapped", "raw", "mem", "obj")
    nothing = {f"{domain}_{kind}_bytes": 0 for domain in domains for kind in ("allocated", "freed")}
    row = {"time_ns": START + ms * MS, "process": 0, "event": 0 if ms == 0 else 1, "footprint_bytes": footprint}
    return row | {"stack_state": 1} | nothing | flows


def _block(ms: int, freed_ms: int | None) -> dict[str, Any]:
    freed = None if freed_ms is None else START + freed_ms * MS
    row = {"time_ns": START + ms * MS, "process": 0, "thread": 0, "domain": 0, "size_bytes": 100, "requested_bytes": 90}
    sampled = {"mean_bytes": 1000, "weight_bytes": 1051, "followed": True, "freed_ns": freed}
    return row | sampled | {"stack": 0, "stack_state": 0}


@pytest.mark.parametrize(("thread", "left"), [("*", [0, 1]), ("main", []), ("pool", []), ("[Mp]*", [0])])
def test_positions_are_kept_with_both_of_their_threads(
    thread: str, left: list[int], made: Builder, scrubbed: Callable[..., Recording]
) -> None:
    pool = made.thread("pool")
    made.position(pool, 0, 0, 10)
    made.position(pool, 1, 0, 10)
    result = scrubbed(drop=[], thread=thread)
    rows = pq.read_table(result.path / "positions.parquet").to_pylist() if result.rows("positions") else []
    threads = result.table("threads").column("name").to_pylist()
    assert [row["thread"] for row in rows] == left
    assert all(threads[row["sampled"]] == "pool" for row in rows)


def test_ranks_are_kept(scrubbed: Callable[..., Recording]) -> None:
    assert scrubbed().manifest.labels == {"rank": "3"}

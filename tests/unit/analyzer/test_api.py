"""The public interface for programs: tables, frames with names, and answers to questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import tachograph.analyzer
from tachograph.analyzer import Question, Recording, build_profile
from tachograph.format import FormatError
from unit.analyzer.recordings import MS, NATIVE_FRAME, START, Builder


@pytest.fixture
def recording(builder: Builder) -> Iterator[Recording]:
    app, library = builder.file("/srv/app.py"), builder.file("/usr/lib/python3.13/lib.py")
    main, helper = builder.code(app, "main", 1), builder.code(library, "helper\n", 20)
    inner = builder.stack((main, 3), (helper, 2))
    builder.cpu(inner, 10)
    builder.cpu(builder.stack((main, 4)), 30, native_frame=NATIVE_FRAME, system_ns=None)
    builder.cpu(None, 5, native_frame=None)
    builder.wait(inner, 1000, 3000, target=2)
    builder.wait(None, 4000, 4500, target=7)
    with tachograph.analyzer.open(builder.write()) as opened:
        yield opened


def test_every_table_can_be_read(recording: Recording) -> None:
    assert isinstance(recording, Recording)
    cpu = recording.table("cpu")
    assert isinstance(cpu, pa.Table)
    assert cpu.column("cpu_ns").to_pylist() == [10 * MS, 30 * MS, 5 * MS]
    assert recording.table("codes").column("qualname").to_pylist() == ["main", "helper\n"]


def test_a_table_that_does_not_exist_or_was_not_recorded(recording: Recording) -> None:
    with pytest.raises(FormatError, match="there is no table 'gpus'; there are: processes, threads"):
        recording.table("gpus")
    with pytest.raises(FormatError, match="copies was not recorded"):
        _ = recording.copies


def test_frames_keep_what_is_unknown_apart_from_nothing(recording: Recording) -> None:
    cpu = recording.cpu
    assert cpu["time_s"].tolist() == [0.0, 0.01, 0.02]
    assert cpu["system_ns"].dtype == pd.Int64Dtype()
    assert cpu["system_ns"].tolist() == [0, pd.NA, 0]
    assert cpu["stack"].isna().tolist() == [False, False, True]
    assert cpu["stack_state"].tolist() == ["whole", "whole", "none"]
    assert list(recording.waits["target"].cat.categories) == [
        "unknown", "file", "socket", "pipe", "terminal", "gpu", "other", "cpu", "gil", "lock",
    ]  # fmt: skip


def test_names_stand_beside_ids(recording: Recording) -> None:
    cpu = recording.frame("cpu", names=True)
    assert cpu["function"].astype(object).where(cpu["function"].notna(), None).tolist() == ["helper\\x0a", "main", None]
    assert cpu["line"].tolist() == [22, 5, pd.NA]
    assert cpu["thread_name"].tolist() == ["MainThread"] * 3
    assert cpu["native"].astype(object).where(cpu["native"].notna(), None).tolist() == [
        "_PyEval_EvalFrameDefault", "deflate", None,
    ]  # fmt: skip
    assert cpu.groupby("file", observed=True)["cpu_ns"].sum().to_dict() == {
        "/srv/app.py": 30 * MS,
        "/usr/lib/python3.13/lib.py": 10 * MS,
    }


def test_a_window_leaves_out_rows_that_begin_outside(recording: Recording) -> None:
    assert recording.frame("cpu", window=(0.01, 0.02))["time_ns"].tolist() == [START + 10 * MS]
    assert recording.frame("waits", window=(None, -6))["target"].tolist() == ["socket"]
    with pytest.raises(FormatError, match="empty"):
        recording.frame("cpu", window=(2, 1))


def test_answers_are_those_of_a_profile(recording: Recording) -> None:
    lines = recording.lines(scope="project")
    assert lines[["file", "line", "cpu_s"]].head(2).to_numpy().tolist() == [
        ["/srv/app.py", 5, 0.03],
        ["/srv/app.py", 4, 0.01],
    ]
    pd.testing.assert_frame_equal(lines, build_profile(recording, Question(scope="project")).lines)
    assert recording.functions(scope="all")["function"].tolist()[:2] == ["main", "helper\\x0a"]
    assert recording.files(scope="all", window=(0, 0.015))["cpu_s"].tolist()[:2] == [0.03, 0.01]
    assert recording.threads()["name"].tolist() == ["MainThread"]
    assert recording.profile(thread="main").totals.wait_s == 2.0
    with pytest.raises(FormatError, match="no thread is named 'nobody'"):
        recording.lines(thread="nobody")


def test_archives_are_opened_too(recording: Recording, tmp_path: Path) -> None:
    import shutil

    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", recording.path.parent, recording.path.name)
    with tachograph.analyzer.open(archive) as packed:
        assert packed.cpu["cpu_ns"].sum() == 45 * MS


def test_suggestions_are_a_frame(builder: Builder) -> None:
    source = "import pandas\ndef work(table):\n    for i, row in table.iterrows():\n        print(row)\n"
    library = builder.file("/usr/lib/python3/site-packages/pandas/core/frame.py")
    frames = (builder.code(builder.file("/srv/a.py", source), "work"), 2), (builder.code(library, "iterrows"), 0)
    for number in range(100):
        builder.cpu(builder.stack(*frames), time_ns=START + number * MS)
    with tachograph.analyzer.open(builder.write()) as opened:
        (row,) = opened.suggestions().to_dict("records")
        assert opened.suggestions(window=(0.5, None)).empty
    assert (row["rule"], row["file"], row["line"], row["function"]) == ("iterrows", "/srv/a.py", 3, "work")
    assert row["link"] == "docs/how-to/suggestions.md#iterrows"

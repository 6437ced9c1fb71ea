"""The recordings of a session: which of them belong together, and what is left of sessions that were killed."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tachograph.notebook.cell_runs import LOCK, MOST_KEPT, PREFIX, Run, Runs, delete_left_over


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def made(runs: Runs, cell: int, cell_id: str | None = None) -> Run:
    run = Run(cell, cell_id, runs.new_path(cell))
    run.path.mkdir()
    runs.add(run)
    return run


def test_the_run_before_is_one_of_the_same_cell() -> None:
    runs = Runs()
    first, other, second = made(runs, 3, "a"), made(runs, 4, "b"), made(runs, 5, "a")
    assert runs.newest == second
    assert runs.before(second) == first
    assert runs.before(other) is None
    assert runs.of_cell(4) == other
    # Where cells have no ids it is the one before it.
    third = made(runs, 6)
    assert runs.before(third) == second
    runs.close()


def test_the_oldest_of_too_many_are_deleted_and_at_the_end_all(temporary: Path) -> None:
    runs = Runs()
    kept = temporary / "kept.tacho"
    kept.mkdir()
    runs.add(Run(1, None, kept))
    all_of_them = [made(runs, number) for number in range(2, MOST_KEPT + 4)]
    assert [run.path.exists() for run in all_of_them] == [False, False, *[True] * MOST_KEPT]
    assert runs.of_cell(2) is None
    runs.close()
    assert list(temporary.iterdir()) == [kept]


def test_only_folders_without_a_session_are_deleted(temporary: Path) -> None:
    runs = Runs()
    run = made(runs, 1)
    dead = temporary / f"{PREFIX}dead"
    (dead / "In-1-001.tacho").mkdir(parents=True)
    (dead / LOCK).touch()
    foreign = temporary / f"{PREFIX}foreign"
    foreign.mkdir()
    linked = temporary / f"{PREFIX}linked"
    linked.symlink_to(foreign)
    delete_left_over()
    assert run.path.is_dir()
    assert sorted(path.name for path in temporary.iterdir()) == sorted(
        [run.path.parent.name, foreign.name, linked.name]
    )
    runs.close()


def test_a_folder_that_was_removed_under_the_session_is_made_again() -> None:
    runs = Runs()
    first = made(runs, 1).path.parent
    for path in first.rglob("*"):
        path.rmdir() if path.is_dir() else path.unlink()
    first.rmdir()
    again = runs.new_path(2).parent
    assert again.is_dir()
    runs.close()
    assert not again.exists()
    assert not [name for name in os.listdir("/proc/self/fd") if PREFIX in os.path.realpath(f"/proc/self/fd/{name}")]


def test_what_the_reports_need_is_named_in_one_line_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    error = pytest.importorskip("IPython.core.error")
    from tachograph import load_ipython_extension

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(error.UsageError, match=r"needs pandas, .* pip install 'tachograph\[notebook\]'") as refused:
        load_ipython_extension(object())
    assert "\n" not in str(refused.value)

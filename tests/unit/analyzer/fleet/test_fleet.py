"""A fleet's answers are those of its recordings, added up; what cannot be read is said, and nothing is read twice."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import tachograph.analyzer
import tachograph.analyzer.fleet as fleets
from tachograph.analyzer import Question, Recording
from tachograph.analyzer.commands.fleet import fleet as command
from tachograph.analyzer.fleet import index as index_module
from tachograph.analyzer.fleet import recording_sums
from tachograph.analyzer.fleet.store import Store, StoredRecording
from tachograph.analyzer.profile.build import ask, conclude, measure
from tachograph.format import FormatError
from unit.analyzer.fleet.fleets import SOURCE, one
from unit.analyzer.recordings import Builder

pytestmark = pytest.mark.broad


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve recordings of two versions, and their index; in the second version, line 3 has twice the time."""
    folder = tmp_path_factory.mktemp("fleet") / "shop"
    for number in range(12):
        version = "a" if number < 6 else "b"
        slow = 100 if version == "a" else 200
        labels = {"version": version, "service.name": "shop"}
        milliseconds = {2: 100, 3: slow + 10 * (number % 3), 4: 50}
        one(folder / f"v{version}", number, milliseconds, labels=labels, folder=f"/srv/releases/{number}/shop")
    fleets.open(str(folder))
    return folder


@pytest.fixture
def shop(indexed: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return Path(shutil.copytree(indexed, tmp_path / "shop"))


def test_a_question_loads_nothing_that_reads_recordings(shop: Path) -> None:
    code = (
        "import sys, tachograph.analyzer.fleet as fleets\n"
        f"fleet = fleets.open({str(shop)!r})\n"
        "assert len(fleet.top()) > 0 and len(fleet.recordings) == 12\n"
        "assert not {'tachograph.analyzer.profile.build', 'tachograph.analyzer.diff.evidence'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_sums_are_those_of_the_recordings(shop: Path) -> None:
    found = fleets.open(str(shop))
    assert len(found.recordings) == 12
    rows = found.top(level="lines").set_index("line")
    expected: dict[int, float] = {}
    for path in shop.glob("*/*.tacho"):
        with tachograph.analyzer.open(path) as recording:
            for row in recording.lines(scope="project").itertuples():
                if row.cpu_s > 0:
                    expected[row.line] = expected.get(row.line, 0.0) + row.cpu_s
    assert rows["amount"].to_dict() == pytest.approx(expected)
    assert (rows["value"] * sum(expected.values())).to_dict() == pytest.approx(expected)
    assert (rows["recordings"] == 12).all()
    assert ((rows["low"] <= rows["value"]) & (rows["value"] <= rows["high"])).all()
    # The hosts have the program in folders of their own.
    assert set(rows["file"]) == {"shop.py"}
    assert rows.loc[3, "source"] == "    query(request)"


def test_a_recording_is_summed_up_without_call_paths_and_garbage_collections(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together they took a third of the time."""
    (path, *_) = sorted(indexed.glob("va/*.tacho"))
    with Recording.open(path) as recording:
        asked = ask(recording, Question(), brief=True)
        profile = conclude(asked, measure(asked))
        assert "paths" not in vars(asked)  # not even begun
        with pytest.raises(ValueError, match="a brief profile has no call paths"):
            _ = profile.paths
    collecting = []
    original = recording_sums.sums_of

    def sums(path: Path, found: StoredRecording, question: Question) -> dict[str, pa.Table]:
        collecting.append(gc.isenabled())
        return original(path, found, question)

    monkeypatch.setattr(recording_sums, "sums_of", sums)
    found = Store(str(indexed)).recordings()[0]
    recording_sums.read_sums(Store(str(indexed)), found, Question())
    monkeypatch.setattr(recording_sums, "SMALL", 0)
    recording_sums.read_sums(Store(str(indexed)), found, Question())
    assert collecting == [False, True]
    assert gc.isenabled()


def test_functions_and_stacks(shop: Path) -> None:
    found = fleets.open(str(shop))
    functions = found.top(level="functions", total=True).set_index("name")
    assert functions.loc["handle", "value"] == pytest.approx(1.0)
    assert functions.loc["<module>", "value"] == pytest.approx(1.0)
    (stack,) = found.top(level="stacks").itertuples()
    assert stack.path == ["<module>", "handle"]
    assert stack.amount == pytest.approx(functions.loc["handle", "amount"])


def test_by_label_and_where(shop: Path) -> None:
    found = fleets.open(str(shop))
    by = found.top(level="lines", by="version")
    slow = by[by["line"] == 3].set_index("group")["value"]
    assert slow["b"] > 1.3 * slow["a"]
    only = found.top(level="lines", where="version=b")
    assert only.set_index("line").loc[3, "value"] == pytest.approx(slow["b"])
    assert found.top(where=["host=web-1*"])["of"].tolist()[0] == 3
    with pytest.raises(FormatError, match="no recording has version=c; version is: a, b"):
        found.top(where="version=c")
    with pytest.raises(FormatError, match="no recording has the label 'colour'"):
        found.top(by="colour")


def test_lines_are_followed_through_an_edit(tmp_path: Path) -> None:
    for number in range(6):
        one(tmp_path / "old", number, {3: 100, 4: 100})
        one(tmp_path / "new", number, {5: 300, 6: 100}, source=f"import sys\n# more\n{SOURCE}")
    rows = fleets.open(str(tmp_path)).top(level="lines")
    assert rows[["line", "source", "recordings"]].values.tolist() == [
        [5, "    query(request)", 12],
        [6, "    render(request)", 12],
    ]
    assert rows["amount"].tolist() == pytest.approx([2.4, 1.2])


def test_nothing_is_read_twice(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fleets.open(str(shop)).top()
    read: list[str] = []
    original = recording_sums.read_sums

    def counted(store: Store, found: StoredRecording, question: Question) -> dict[str, pa.Table]:
        read.append(found.path)
        return original(store, found, question)

    monkeypatch.setattr(recording_sums, "read_sums", counted)
    pd.testing.assert_frame_equal(fleets.open(str(shop)).top(), first)
    assert read == []
    one(shop / "vb", 20, {2: 100}, labels={"version": "b"})
    shutil.rmtree(shop / "va" / "run-000.tacho")
    again = fleets.open(str(shop))
    assert read == ["vb/run-020.tacho"]
    assert len(again.recordings) == 12
    fleets.open(str(shop), scope="all")
    assert len(read) == 1 + 12


def test_what_cannot_be_read_is_left_out_and_said(shop: Path) -> None:
    whole = fleets.open(str(shop), index=str(shop.parent / "index")).top(level="lines", where="version=b")
    folder = shop / "va"
    # A file in the place of another: one that is written to in place changes no folder, which is known by its time.
    (folder / "run-000.tacho" / "cpu.parquet").unlink()
    (folder / "run-000.tacho" / "cpu.parquet").write_bytes(b"PAR1 broken")
    (folder / "run-001.tacho" / "manifest.json").unlink()
    (folder / "run-002.tacho" / "stacks.parquet").unlink()
    (folder / "run-003.tacho" / "manifest.json").write_text("{")
    shutil.copytree(folder / "run-004.tacho", folder / "zz-copy.tacho")
    found = fleets.open(str(shop))
    assert len(found.recordings) == 8
    reasons = found.left_out.set_index("path")["reason"]
    assert [path.rpartition("/")[2] for path in reasons.index] == [
        *(f"run-00{number}.tacho" for number in range(4)),
        "zz-copy.tacho",
    ]
    assert "manifest" in reasons["va/run-001.tacho"]
    assert reasons["va/zz-copy.tacho"] == "it is a copy of va/run-004.tacho"
    assert all(reason.isprintable() and len(reason) < 400 for reason in reasons)
    pd.testing.assert_frame_equal(found.top(level="lines", where="version=b"), whole)
    told = found.health()
    counts = told[told["kind"] == "count"].set_index("name")["value"]
    assert (counts["recordings"], counts["left_out"]) == (8, 5)
    assert told[told["kind"] == "left out"].set_index("name")["text"].to_dict() == reasons.to_dict()


def test_a_recording_that_is_repaired_is_read_again(shop: Path) -> None:
    manifest = shop / "va" / "run-000.tacho" / "manifest.json"
    text = manifest.read_text()
    manifest.unlink()
    assert len(fleets.open(str(shop)).recordings) == 11
    manifest.write_text(text)
    assert len(fleets.open(str(shop)).recordings) == 12


def test_small_parts_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "BATCH", 2)
    monkeypatch.setattr(index_module, "SMALL_PARTS", 3)
    folder = tmp_path / "shop"
    for number in range(4):
        one(folder, number, {2: 100, 3: 50 + number * 10}, labels={"service.name": f"s{number % 2}"})
    fleets.open(str(folder))
    for number in range(4, 9):
        one(folder, number, {2: 100, 3: 50 + number * 10})
    found = fleets.open(str(folder))
    # On a slow machine a file lies beside the index: the recordings are old enough to be listed there.
    (made,) = (path for path in (folder / ".tachograph").iterdir() if path.is_dir())
    assert len(json.loads((made / "index.json").read_text())["parts"]) == 1
    assert len(list((made / "lines").iterdir())) == 1
    assert len(list((made / "sources").iterdir())) == 1
    fresh = fleets.open(str(folder), index=str(tmp_path / "fresh"))
    pd.testing.assert_frame_equal(found.top(level="lines"), fresh.top(level="lines"))
    assert len(found.recordings) == 9


def test_garbage_of_a_batch_is_collected() -> None:
    """The command collects seldom: what recordings left in circles was 0.7 MB for each, until the end."""

    class Circle:
        pass

    circle = Circle()
    circle.itself = circle  # type: ignore[attr-defined]
    left = weakref.ref(circle)
    gc.disable()
    try:
        del circle
        index_module.merged([recording_sums.failed(StoredRecording("a.tacho", 0, "0"), "why")])
        assert left() is None
    finally:
        gc.enable()


def test_recordings_made_in_different_ways_are_refused(shop: Path) -> None:
    one(shop, 30, {2: 100}, sampler="signal")
    found = fleets.open(str(shop))
    with pytest.raises(FormatError, match=r"made in different ways \(sampler: native in 12 and signal in 1\)"):
        found.top()
    assert len(found.top(anyway=True))
    assert len(found.top(where="sampler=native"))


def test_losses(shop: Path) -> None:
    one(shop, 31, {2: 100}, quality=[{"process": 0, "loss": "records_dropped", "count": 3}])
    told = fleets.open(str(shop)).health()
    assert told.set_index(["kind", "name"]).loc[("count", "with_losses"), "value"] == 1
    losses = told[told["kind"] == "loss"]
    assert losses[["name", "recordings", "value"]].values.tolist() == [["records_dropped", 1, 3.0]]
    assert told.set_index(["kind", "name"]).loc[("label", "version"), "text"] == "a, b"


def test_rows_beyond_the_limit_are_one(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_sums, "MAX_ROWS", 2)
    rows = fleets.open(str(shop), index=str(shop.parent / "index")).top(level="lines")
    assert "<other>" in rows["name"].tolist()
    assert rows["value"].sum() == pytest.approx(1.0)


def test_damaged_index(shop: Path) -> None:
    fleets.open(str(shop))
    (made,) = (shop / ".tachograph").glob("*/index.json")
    made.write_text("[]")
    with pytest.raises(FormatError, match=r"the index .* cannot be read"):
        fleets.open(str(shop))


@pytest.mark.parametrize("damage", [b"PAR1 broken PAR1", b"PAR1" + bytes(100) + b"\xff\xff\xff\xffPAR1", b"PAR1", b""])
def test_damaged_sums(shop: Path, damage: bytes) -> None:
    found = fleets.open(str(shop))
    for part in shop.glob(".tachograph/*/functions/*.parquet"):
        part.write_bytes(damage)
    with pytest.raises(FormatError, match=r"the index .* is damaged \(.*\): remove it$"):
        found.top()


def test_a_folder_whose_name_is_a_pattern(shop: Path, tmp_path: Path) -> None:
    """DuckDB takes names of files for patterns: such an index is read in another way."""
    other = shutil.copytree(shop, tmp_path / "[a]*" / "shop")
    assert not fleets.open(str(other)).select().index.local_files("lines")
    assert fleets.open(str(shop)).select().index.local_files("lines")
    for level in ("lines", "stacks"):
        answers = [fleets.open(str(place)).top(level=level, by="version") for place in (shop, other)]
        pd.testing.assert_frame_equal(*answers)


def test_the_commands(shop: Path) -> None:
    run = CliRunner().invoke
    told = run(command, ["top", str(shop), "--lines", "--workers", "1"])
    assert told.exit_code == 0, told.output
    assert "shop.py:3" in told.output
    found = json.loads(run(command, ["top", str(shop), "--workers", "1", "--by", "version", "--json", "-"]).output)
    assert found["tachograph"] == {"document": "fleet-top", "version": 1}
    assert {row["group"] for row in found["rows"]} == {"a", "b"}
    (shop / "va" / "run-000.tacho" / "manifest.json").unlink()
    told = run(command, ["health", str(shop), "--workers", "1"])
    assert told.exit_code == 0, told.output
    assert "11 recordings" in told.output
    assert re.search(r"interval +0\.01 s \(of ", told.output)
    assert "left out: 1 recording" in told.output
    assert "va/run-000.tacho" in told.output
    found = json.loads(run(command, ["health", str(shop), "--workers", "1", "--json", "-"]).output)
    assert found["counts"]["recordings"] == 11


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_rows_of_a_narrow_terminal_are_cut_and_not_wrapped(shop: Path, encoding: str) -> None:
    def rows(columns: str) -> list[str]:
        run = CliRunner(charset=encoding).invoke
        told = run(command, ["top", str(shop), "--lines", "--workers", "1"], env={"COLUMNS": columns}).output
        return told[told.index("hosts") + 5 :].strip("\n").splitlines()

    narrow, wide = rows("64"), rows("250")
    assert len(narrow) == len(wide) == 3
    assert max(map(len, narrow)) == 64 < max(map(len, wide))
    assert all("shop.py:" in row for row in narrow)
    assert any("…" in row for row in narrow) == (encoding == "utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["top", "nowhere"], "there is no folder nowhere"),
        (["top", "nope://x"], "is no folder and no URL"),
        (["top", "{shop}", "--where", "x"], "'x' is not KEY=VALUE"),
        (["top", "{shop}", "--metric", "x"], "there is no metric 'x'"),
        (["top", "{shop}", "--storage", "x"], "is not KEY=VALUE"),
        (["top", "{shop}", "--metric", "held"], "memory"),
        (["top", "{shop}", "--index", "/proc/nothing"], "cannot write the index"),
    ],
)
def test_bad_input_is_one_line_and_status_2(shop: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(command, [*(each.format(shop=shop) for each in arguments), "--workers", "1"])
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, shop: Path) -> None:
    from tachograph.analyzer.fleet import extras

    monkeypatch.setattr(extras, "find_spec", lambda name: None if name in ("duckdb", "s3fs") else object())
    with pytest.raises(FormatError, match=r"^a fleet needs duckdb: pip install 'tachograph\[fleet\]'$"):
        fleets.open(str(shop))
    monkeypatch.setattr(extras, "NEEDED", ())
    with pytest.raises(FormatError, match=r"^s3:// needs s3fs: pip install 'tachograph\[fleet\]'$"):
        fleets.open("s3://bucket/x")


def test_a_comprehension_is_a_part_of_its_function(tmp_path: Path) -> None:
    """Before Python 3.12 it is a function of its own: versions of Python compare, and ``when parse`` has its time."""
    answers = []
    for version in ("3.11.9", "3.12.4"):
        (tmp_path / version).mkdir()
        builder = Builder(tmp_path / version / "run.tacho", python_version=version, labels={"version": version})
        file = builder.file("/srv/shop/shop.py", SOURCE)
        codes = [builder.code(file, name, 1) for name in ("parse", "parse.<locals>.<listcomp>", "clean")]
        comprehension = [] if version == "3.12.4" else [(codes[1], 1)]
        for _ in range(40):
            builder.cpu(builder.stack((codes[0], 0), *comprehension), 10)
        for _ in range(20):
            builder.cpu(builder.stack((codes[0], 0), *comprehension, (codes[2], 2)), 10)
        builder.write()
        found = fleets.open(str(tmp_path / version))
        own, total = found.top(), found.top(total=True)
        amounts = {name: frame.set_index("name")["amount"].to_dict() for name, frame in (("own", own), ("all", total))}
        tree = found.flame()
        answers.append((amounts, tree[["parent", "name", "total_cpu_s"]].to_dict("records")))
    assert answers[0] == answers[1]
    assert answers[0][0]["own"] == pytest.approx({"parse": 0.4, "clean": 0.2})
    assert answers[0][0]["all"] == pytest.approx({"parse": 0.6, "clean": 0.2})


def test_what_went_wrong_on_the_way_is_named(shop: Path) -> None:
    """A file of no bytes, a file that is no archive, and an empty folder, each called like a recording."""
    (shop / "zero.tacho").write_bytes(b"")
    (shop / "notzip.tacho").write_bytes(b"hello")
    (shop / "empty.tacho").mkdir()
    (shop / "odd").mkdir()
    shutil.copytree(shop / "va" / "run-000.tacho", shop / "odd" / "bad.tacho")
    (shop / "odd" / "bad.tacho" / "manifest.json").write_text("{")
    reasons = fleets.open(str(shop)).left_out.set_index("path")["reason"].to_dict()
    assert sorted(reasons) == ["empty.tacho", "notzip.tacho", "odd/bad.tacho", "zero.tacho"]
    assert "/" not in reasons["odd/bad.tacho"], reasons
    assert reasons["odd/bad.tacho"].startswith("manifest.json")


def test_an_indexer_that_is_killed_goes_on(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "BATCH", 4)
    original, read = recording_sums.read_sums, []

    def dies(store: Store, found: StoredRecording, question: Question) -> dict[str, pa.Table]:
        read.append(found.path)
        if len(read) == 7:
            raise KeyboardInterrupt
        return original(store, found, question)

    monkeypatch.setattr(recording_sums, "read_sums", dies)
    index = str(shop.parent / "fresh")
    with pytest.raises(KeyboardInterrupt):
        fleets.open(str(shop), index=index)
    assert len(fleets.open(str(shop), index=index).recordings) == 12
    assert len(read) == 7 + 8


def test_parts_of_no_catalogue_are_removed_in_time(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "SMALL_PARTS", 0)
    fleets.open(str(shop))
    (made,) = (path for path in (shop / ".tachograph").iterdir() if path.is_dir())
    old, young = made / "lines" / f"{'a' * 32}.parquet", made / "lines" / f"{'b' * 32}.parquet"
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (1_000_000, 1_000_000))
    one(shop / "vb", 40, {2: 100}, labels={"version": "b"})
    fleets.open(str(shop))
    assert (old.exists(), young.exists()) == (False, True)


def test_versions_are_in_natural_order(tmp_path: Path) -> None:
    for number, version in enumerate(("1.10", "1.9", "1.2", "1.10", "1.11")):
        one(tmp_path / "runs", number, {2: 100}, labels={"version": version})
    answer = fleets.open(str(tmp_path / "runs")).top(by="version")
    assert list(dict.fromkeys(answer["group"])) == ["1.2", "1.9", "1.10", "1.11"]


def test_an_edited_line_is_one_line(tmp_path: Path) -> None:
    """However much of it was edited: it stands where the other one stood."""
    edited = SOURCE.replace("    query(request)\n", "    rows = database.fetch_all(limit=9)\n")
    for number, source in enumerate((SOURCE, SOURCE, edited)):
        one(tmp_path / "runs", number, {2: 50, 3: 100}, source=source)
    rows = fleets.open(str(tmp_path / "runs")).top(level="lines").set_index("line")
    assert rows["recordings"].to_dict() == {2: 3, 3: 3}
    assert rows.loc[3, "source"].strip() == "query(request)"

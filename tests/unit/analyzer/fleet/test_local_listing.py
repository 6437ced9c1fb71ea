"""Folders that are as they were are not looked through again; whatever changed is seen all the same."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tachograph.analyzer import fleet as fleets
from tachograph.analyzer.fleet import store
from unit.analyzer.fleet.fleets import one

pytestmark = pytest.mark.broad

HOUR_AGO = 3600


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recordings."""
    folder = tmp_path_factory.mktemp("fleet") / "shop"
    for number in range(3):
        one(folder, number, {2: 100, 3: 50})
    return folder


def grow_old(shop: Path) -> None:
    """Let all that is there be of an hour ago."""
    for folder, _, names in os.walk(shop, topdown=False):
        for path in [*(Path(folder, name) for name in names), Path(folder)]:
            then = path.stat().st_mtime - HOUR_AGO
            os.utime(path, (then, then))


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    """A copy of them that was opened, and is an hour old."""
    copy = Path(shutil.copytree(made, tmp_path / "shop"))
    grow_old(copy)
    fleets.open(str(copy))
    return copy


@pytest.fixture
def looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders of the fleet that are looked through from now on."""
    found: list[str] = []
    real = os.scandir

    def scandir(path: "str | int") -> "Iterator[os.DirEntry[str]]":
        if isinstance(path, str) and Path(path).is_relative_to(tmp_path / "shop"):
            found.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return found


def test_what_is_as_it_was_is_not_looked_through(shop: Path, looked_through: list[str], tmp_path: Path) -> None:
    found = fleets.open(str(shop))
    assert looked_through == ["shop"]
    assert found.top(level="lines")["amount"].sum() == pytest.approx(0.45)
    assert found.recordings["bytes"].min() > 10_000
    (copy,) = found.fetch(["run-001.tacho"], tmp_path / "copies")
    assert {path.name for path in copy.iterdir()} == {path.name for path in (shop / "run-001.tacho").iterdir()}


def write_over_the_manifest(recording: Path) -> None:
    path = recording / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")


def replace_a_table(recording: Path) -> None:
    shutil.copy(recording / "cpu.parquet", recording / "new")
    (recording / "new").replace(recording / "cpu.parquet")


def take_a_table_away(recording: Path) -> None:
    (recording / "cpu.parquet").unlink()


def record_anew(recording: Path) -> None:
    shutil.rmtree(recording)
    one(recording.parent, 1, {2: 70})


@pytest.mark.parametrize(
    "change", [write_over_the_manifest, replace_a_table, take_a_table_away, record_anew], ids=lambda each: each.__name__
)
def test_what_changed_is_read_again(shop: Path, looked_through: list[str], change: Callable[[Path], None]) -> None:
    change(shop / "run-001.tacho")
    found = fleets.open(str(shop))
    assert set(looked_through) == {"run-001.tacho", "shop"}  # and once more to be read
    gone = change is take_a_table_away
    assert found.left_out["path"].tolist() == (["run-001.tacho"] if gone else [])
    amounts = {"take_a_table_away": 0.30, "record_anew": 0.37}
    assert found.top(level="lines")["amount"].sum() == pytest.approx(amounts.get(change.__name__, 0.45))


def test_what_comes_and_goes(shop: Path) -> None:
    shutil.rmtree(shop / "run-000.tacho")
    one(shop, 7, {2: 30})
    assert fleets.open(str(shop)).recordings["path"].tolist() == ["run-001.tacho", "run-002.tacho", "run-007.tacho"]
    grow_old(shop)
    fleets.open(str(shop))
    known = json.loads((shop / ".tachograph" / "listing.json").read_text(encoding="utf-8"))["folders"]
    assert sorted(known) == ["run-001.tacho", "run-002.tacho", "run-007.tacho"]


def test_a_recording_that_is_not_whole_yet_is_looked_through_each_time(made: Path, tmp_path: Path) -> None:
    """Its last file may be half there, and grow on without a trace in the folder."""
    shop = Path(shutil.copytree(made, tmp_path / "shop"))
    table = shop / "run-001.tacho" / "waits.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2])
    grow_old(shop)
    assert fleets.open(str(shop)).left_out["path"].tolist() == ["run-001.tacho"]
    folder = shop / "run-001.tacho"
    before = folder.stat()
    table.write_bytes(whole)
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(fleets.open(str(shop)).recordings) == 3


def test_what_is_young_is_looked_through_each_time(made: Path, tmp_path: Path, looked_through: list[str]) -> None:
    shop = Path(shutil.copytree(made, tmp_path / "shop", copy_function=shutil.copyfile))
    for folder in shop.glob("*.tacho"):
        os.utime(folder)
    fleets.open(str(shop))
    looked_through.clear()
    fleets.open(str(shop))
    assert len(looked_through) == 4


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"{", b'{"version": 2, "folders": {}}', b'{"version": 1}', b"\xff\xfe", b"[" * 100_000),
        *(
            b'{"version": 1, "folders": {"run-001.tacho": %b}}' % each
            for each in (b"1", b"[1, 2, 3]", b'["a",1,1,1,"b"]', b'[Infinity,1,1,1,"b"]')
        ),
    ],
)
def test_a_damaged_listing_is_as_none(shop: Path, content: bytes) -> None:
    (shop / ".tachograph" / "listing.json").write_bytes(content)
    assert len(fleets.open(str(shop)).recordings) == 3
    assert len(store.read_known(shop / ".tachograph")) == 3


def test_where_it_cannot_be_written_all_is_looked_through(shop: Path, looked_through: list[str]) -> None:
    path = shop / ".tachograph" / "listing.json"
    path.unlink()
    path.mkdir()
    assert len(fleets.open(str(shop)).recordings) == 3
    assert len(looked_through) == 4
    assert [each.name for each in (shop / ".tachograph").glob("listing*")] == ["listing.json"]

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tachograph.format import load_specification
from tachograph.format.spool.records import ROW_KINDS
from tachograph.recorder.collect import output, removal
from tachograph.recorder.collect.running import note_recorder
from tachograph.recorder.command.manifests import new_manifest
from tachograph.recorder.problems import Refused


@pytest.fixture
def wide_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def recording(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names or ("manifest.json", "cpu.parquet"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).touch()
    return path


def test_numbers_run_on(place: Path) -> None:
    assert output.default_path("fib") == "fib-001.tacho"
    (place / "fib-001.tacho").mkdir()
    (place / "fib-007.tacho.zip").touch()
    (place / "fib-x.tacho").mkdir()
    (place / "other-099.tacho").mkdir()
    assert output.default_path("fib") == "fib-008.tacho"
    path, folder = output.claim_numbered("fib", new_manifest({}))
    assert path == "fib-008.tacho"
    assert output.spool_of(folder) == str(place / "fib-008.tacho" / "spool")


@pytest.mark.usefixtures("wide_umask")
def test_directories_are_private(place: Path) -> None:
    spool = Path(output.spool_of(output.claim("a.tacho", new_manifest({}), force=False)))
    assert (mode(place / "a.tacho"), mode(spool)) == (0o700, 0o700)


def test_directories_are_usable_under_a_narrow_umask(place: Path) -> None:
    before = os.umask(0o777)
    try:
        output.claim("a.tacho", new_manifest({}), force=False)
    finally:
        os.umask(before)
    assert mode(place / "a.tacho") == 0o700


def test_an_empty_directory_is_used(place: Path) -> None:
    (place / "a.tacho").mkdir(mode=0o755)
    output.claim("a.tacho", new_manifest({}), force=False)
    assert mode(place / "a.tacho") == 0o700


def test_an_existing_recording_is_kept(place: Path) -> None:
    recording(place / "a.tacho")
    with pytest.raises(Refused, match="exists; use --force"):
        output.claim("a.tacho", new_manifest({}), force=False)
    assert (place / "a.tacho" / "cpu.parquet").exists()


@pytest.mark.parametrize("name", ["manifest.json", "spool/1-2.000000.seg"])
def test_force_replaces_a_recording(place: Path, name: str) -> None:
    recording(place / "a.tacho", "cpu.parquet", name)
    output.claim("a.tacho", new_manifest({}), force=True)
    assert {entry.name for entry in (place / "a.tacho").iterdir()} == {"manifest.json", "spool"}
    assert not list((place / "a.tacho" / "spool").iterdir())


def test_force_takes_every_table_along(place: Path) -> None:
    path = recording(place / "a.tacho", "manifest.json", *(f"{name}.parquet" for name in load_specification().tables))
    output.claim("a.tacho", new_manifest({}), force=True)
    assert sorted(file.name for file in path.iterdir()) == ["manifest.json", "spool"]


@pytest.mark.parametrize("foreign", ["notes.txt", "spool/notes.txt", "sub/cpu.parquet", "spool/parts/x/cpu.parquet"])
def test_force_never_deletes_what_is_not_ours(place: Path, foreign: str) -> None:
    path = recording(place / "a.tacho", "manifest.json", "spool/1-2.000000.seg")
    (path / foreign).parent.mkdir(parents=True, exist_ok=True)
    (path / foreign).touch()
    with pytest.raises(Refused, match="is not part of a recording"):
        output.claim("a.tacho", new_manifest({}), force=True)
    assert (path / foreign).exists()
    assert (path / "manifest.json").exists()


def test_force_does_not_delete_through_a_link(place: Path) -> None:
    elsewhere = recording(place / "elsewhere", "1-2.000000.seg")
    path = recording(place / "a.tacho", "manifest.json")
    (path / "spool").symlink_to(elsewhere)
    with pytest.raises(Refused):
        output.claim("a.tacho", new_manifest({}), force=True)
    assert (elsewhere / "1-2.000000.seg").exists()


def test_force_does_not_replace_another_directory(place: Path) -> None:
    recording(place / "data", "table.parquet")
    with pytest.raises(Refused, match="is not a recording"):
        output.claim("data", new_manifest({}), force=True)


def test_force_does_not_replace_a_recording_in_the_making(place: Path) -> None:
    path = recording(place / "a.tacho", "manifest.json", "spool/1-2.000000.seg")
    note_recorder(path / "spool", os.getpid())
    with pytest.raises(Refused, match="is being recorded"):
        output.claim("a.tacho", new_manifest({}), force=True)


def test_a_link_is_not_followed(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / "a.tacho").symlink_to(place / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        output.claim("a.tacho", new_manifest({}), force=True)


def test_a_file_is_not_replaced(place: Path) -> None:
    (place / "a.tacho").touch()
    with pytest.raises(Refused, match="is not a recording"):
        output.claim("a.tacho", new_manifest({}), force=True)


def test_an_impossible_place(place: Path) -> None:
    with pytest.raises(Refused, match="cannot write the recording"):
        output.claim("missing/a.tacho", new_manifest({}), force=False)


def test_probe_leaves_nothing(place: Path) -> None:
    folder = output.claim("a.tacho", new_manifest({}), force=False)
    output.probe(folder)
    assert not list((place / "a.tacho" / "spool").iterdir())
    output.discard(folder)
    assert not (place / "a.tacho").exists()


def test_remove_spool_takes_parts_along(place: Path) -> None:
    output.claim("a.tacho", new_manifest({}), force=False).close()
    spool = place / "a.tacho" / "spool"
    part = spool / "parts" / "1-2.000000-000003"
    part.mkdir(parents=True)
    rows = [part / f"{kind}.parquet" for kind in ROW_KINDS]
    for file in (spool / "1-2.ctl", spool / "recorder.json", part / "definitions.seg", *rows):
        file.touch()
    removal.remove_spool(spool)
    assert not spool.exists()

"""Containers are opened only if nothing in them can do harm."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tachograph.format import FormatError, open_container

MANIFEST = json.dumps({"format_version": "1.0", "uuid": "u", "state": "complete"})


def make_zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("manifest.json", MANIFEST)
        for name, data in members.items():
            file.writestr(name, data)
    return path


def parquet_bytes(rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": pa.array(range(rows))}), sink)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_parquet_in_a_zip(tmp_path: Path, method: int) -> None:
    path = make_zip(tmp_path / "a.zip", {"b.parquet": parquet_bytes(5000), "c.parquet": b"PAR1 no"}, method)
    with open_container(path) as container:
        with container.parquet("b.parquet") as file:
            assert file.read()["a"].to_pylist() == list(range(5000))
            assert file.read_row_group(0).num_rows == 5000
        with pytest.raises(FormatError, match="not a whole Parquet file"):
            container.parquet("c.parquet")
        with pytest.raises(FormatError, match=r"has no d\.parquet"):
            container.parquet("d.parquet")
        assert container.names() == ["b.parquet", "c.parquet", "manifest.json"]
        assert container.spool() is None
        with pytest.raises(FormatError, match="more than it may"):
            container.read("b.parquet", limit=10)


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/etc/passwd", "a\\..\\b", "C:/x", "a//b", "./a", "a\0b", "n" * 600]
)
def test_unsafe_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.zip"
    stand_in = "~" * len(name)  # zipfile itself does not write all of these names
    make_zip(path, {stand_in: b"x"})
    path.write_bytes(path.read_bytes().replace(stand_in.encode(), name.encode()))
    with pytest.raises(FormatError, match="unsafe name") as error:
        open_container(path)
    assert "\n" not in str(error.value)


def test_folders_in_a_zip_are_fine(tmp_path: Path) -> None:
    with open_container(make_zip(tmp_path / "a.zip", {"spool/": b"", "spool/a": b"x"})) as container:
        assert container.names() == ["manifest.json", "spool/a"]


def test_links_and_doubles_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", MANIFEST)
        link = zipfile.ZipInfo("cpu.parquet")
        link.external_attr = 0o120777 << 16
        file.writestr(link, "/etc/passwd")
    with pytest.raises(FormatError, match="not a plain file"):
        open_container(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("manifest.json", MANIFEST)
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("manifest.json", MANIFEST)
    with pytest.raises(FormatError, match="two members"):
        open_container(path)


@pytest.mark.broad
def test_bombs(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"spool/x.seg": bytes(100 << 20)})
    with pytest.raises(FormatError, match="would unpack"):
        open_container(path)


def test_sizes_that_are_lies(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"b.parquet": parquet_bytes(50_000)})
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    struct.pack_into("<I", data, at + 24, 100)  # the uncompressed size in the directory
    path.write_bytes(data)
    with open_container(path) as container, pytest.raises(FormatError):
        container.parquet("b.parquet")
    struct.pack_into("<I", data, at + 24, 0xFFFFFFF0)
    path.write_bytes(data)
    with pytest.raises(FormatError, match="would unpack"):
        open_container(path)


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.99])
def test_truncated_zip(tmp_path: Path, keep: float) -> None:
    path = make_zip(tmp_path / "a.zip", {"b.parquet": parquet_bytes(5000)})
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(FormatError):
        open_container(path)


def test_corrupted_member(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"b.parquet": os.urandom(5000)})
    data = bytearray(path.read_bytes())
    for at in range(800, 900):
        data[at] ^= 0xFF
    path.write_bytes(data)
    with open_container(path) as container, pytest.raises(FormatError):
        container.read("b.parquet")


def test_spool_of_a_zip_is_unpacked_and_removed(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"spool/1-1.ctl": b"x", "spool/parts/1-1.000000-000001/cpu.parquet": b"y"})
    with open_container(path) as container:
        spool = container.spool()
        assert spool is not None
        assert (spool.path / "1-1.ctl").read_bytes() == b"x"
        assert [part.last for part in spool.parts("1-1")] == [1]
        assert container.spool() is not None
    assert not spool.path.exists()


def test_things_that_are_no_recordings(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "folder").mkdir()
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as file:
        file.writestr("a/manifest.json", MANIFEST)
        file.writestr("b/manifest.json", MANIFEST)
    for name in ("nothing", "text", "folder", "b.zip"):
        with pytest.raises(FormatError, match=name) as error:
            open_container(tmp_path / name)
        assert "\n" not in str(error.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_directory_is_not_trusted_either(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(MANIFEST)
    (tmp_path / "secret").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "spool").symlink_to("/tmp")
    os.mkfifo(tmp_path / "pipe")
    with open_container(tmp_path) as container:
        assert container.names() == ["manifest.json"]
        assert container.spool() is None
        for name in ("secret", "folder/passwd", "pipe", "../x"):
            with pytest.raises(FormatError):
                container.open(name)

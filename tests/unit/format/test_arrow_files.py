"""Arrow reads files of its own: its threads need no lock of the interpreter to let go of them."""

import io
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from support.vectors import VECTORS
from tachograph.format import FormatError, open_container
from tachograph.format import atomic as files_of

PLACES = ("directory", "stored", "deflated")


def recording(folder: Path, place: str) -> Path:
    """A golden recording in a directory, or in a zip file."""
    if place == "directory":
        return VECTORS / "whole.tacho"
    path = folder / "whole.zip"
    method = zipfile.ZIP_STORED if place == "stored" else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", method) as file:
        for each in sorted((VECTORS / "whole.tacho").iterdir()):
            file.write(each, each.name)
    return path


@pytest.mark.parametrize("limit", [1 << 26, 100])
@pytest.mark.parametrize("place", PLACES)
def test_nothing_of_python_is_in_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, limit: int) -> None:
    monkeypatch.setattr(files_of, "MAX_IN_MEMORY", limit)
    with open_container(recording(tmp_path, place)) as container:
        file = container.arrow_file("cpu.parquet")
        assert isinstance(file, pa.NativeFile)
        assert not isinstance(file, pa.PythonFile)
        assert file.read() == (VECTORS / "whole.tacho" / "cpu.parquet").read_bytes()
        with container.parquet("cpu.parquet") as table:
            assert table.read().num_rows == table.metadata.num_rows > 0


def test_no_descriptor_is_left_open() -> None:
    def open_now() -> int:
        return len(os.listdir("/proc/self/fd"))

    with open_container(VECTORS / "whole.tacho") as container:
        before = open_now()
        for _ in range(20):
            with container.parquet("cpu.parquet") as table:
                table.read()
            del table
        assert open_now() <= before + 1


def test_without_names_for_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    with (VECTORS / "whole.tacho" / "cpu.parquet").open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        assert files_of.arrow_file(file, size).read() == Path(file.name).read_bytes()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes((VECTORS / "whole.tacho" / "manifest.json").read_bytes())
    (tmp_path / "cpu.parquet").write_bytes(b"x")
    with open_container(tmp_path) as container:
        (tmp_path / "cpu.parquet").unlink()
        os.mkfifo(tmp_path / "cpu.parquet")
        with pytest.raises(FormatError, match=r"cpu\.parquet"):
            container.parquet("cpu.parquet")
    assert files_of.arrow_file(io.BytesIO(b"abc"), 3).read() == b"abc"

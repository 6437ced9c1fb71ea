import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.traced_memory import traced
from support.vectors import VECTORS
from support.written_spools import add_samples, write_spool
from tachograph.format import LossSpec, Manifest, SpoolDirectory, open_container
from tachograph.recorder.collect.finish import Finished, UnfinishedError, finish, losses, rehearse
from tachograph.recorder.collect.native_places import NativePlaces
from tachograph.recorder.collect.output import claim
from tachograph.recorder.collect.source_texts import SourceStore
from tachograph.recorder.command.manifests import new_manifest
from tachograph.recorder.command.messages import lost, recorded


def recording(path: Path, samples: int = 100, file: str = "<string>") -> Manifest:
    manifest = new_manifest({"sampler": "signal", "sources": True})
    claim(path, manifest, force=False).close()
    write_spool(path / "spool", samples, file=file)
    return manifest


def test_a_recording_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    manifest = recording(path)
    done = finish(path, manifest, SourceStore(tmp_path, code="f()"))
    assert [done.rows[name] for name in ("cpu", "waits", "processes")] == [100, 0, 1]
    assert not done.lost
    assert done.size == sum(file.stat().st_size for file in path.iterdir())
    assert not (path / "spool").exists()
    with open_container(path) as container:
        assert container.manifest().state == "complete"
        assert container.manifest().tables["cpu"]["rows"] == 100
        assert container.parquet("files.parquet").read().column("source").to_pylist() == ["f()"]
    assert {oct(file.stat().st_mode & 0o777) for file in path.iterdir()} == {"0o600"}


def test_a_rehearsal_leaves_everything_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    manifest = new_manifest({"sampler": "signal", "sources": True})
    claim(path, manifest, force=False).close()
    writer = write_spool(path / "spool", 100, close=False)
    before = {each: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    places = NativePlaces()
    rehearse(SpoolDirectory(path / "spool"), places)
    assert {each: each.read_bytes() for each in path.rglob("*") if each.is_file()} == before
    add_samples(writer, 50)
    writer.close()
    assert finish(path, manifest, SourceStore(tmp_path), places=places).rows["cpu"] == 150
    rehearse(SpoolDirectory(path / "spool"), places)  # there is none: the end will say so


def test_a_large_spool_is_not_even_looked_through(tmp_path: Path) -> None:
    """A rehearsal took 20 MB where ten thousand children had come and gone, and the allocator kept them."""
    for number in range(2000):
        for ending in ("ctl", "000000.seg"):
            (tmp_path / f"{number + 2}-{number}.{ending}").touch()
    spool = SpoolDirectory(tmp_path)
    assert spool.has_more_than(1999)
    assert not spool.has_more_than(2000)
    rehearse(spool, NativePlaces())
    _, _, peak = traced(lambda: rehearse(spool, NativePlaces()))
    assert peak < 100_000


def test_segments_in_parts_count_as_well(tmp_path: Path) -> None:
    """Of a spool with two parts of four segments a rehearsal took 40 MB, and the allocators kept half of it."""
    for name in ("1-2.000000-000003", "1-2.000004-000007"):
        (tmp_path / "parts" / name).mkdir(parents=True)
    (tmp_path / "1-2.000008.seg").touch()
    spool = SpoolDirectory(tmp_path)
    assert spool.has_more_than(8)
    assert not spool.has_more_than(9)


@pytest.mark.recording
def test_finishing_loads_neither_numpy_nor_all_of_arrow(tmp_path: Path) -> None:
    """They take longer than the rest."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tachograph.recorder.command.session import import_for_the_end, leave_unneeded_out\n"
        "from tachograph.recorder.collect.finish import finish\n"
        "from tachograph.recorder.command.manifests import new_manifest\n"
        "leave_unneeded_out(); import_for_the_end()\n"
        "path = Path(sys.argv[1])\n"
        "finish(path, new_manifest({'sampler': 'signal', 'sources': True}), None)\n"
        "others = ['numpy', 'pandas', 'pyarrow.compute']\n"
        "others += [f'pyarrow._{store}' for store in ('azurefs', 'gcsfs', 'hdfs', 's3fs')]\n"
        "print([name for name in others if sys.modules.get(name)])"
    )
    for name in ("memory-killed", "tree-killed"):
        path = tmp_path / f"{name}.tacho"
        shutil.copytree(VECTORS / path.name, path)
        ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)
        assert (ran.stdout, ran.stderr) == ("[]\n", "")
        assert pq.read_metadata(path / "processes.parquet").num_rows > 0


def test_exit_statuses(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    manifest = recording(path)
    finish(path, manifest, SourceStore(tmp_path), exit_statuses={os.getpid(): -9})
    assert pq.read_table(path / "processes.parquet").column("exit_status").to_pylist() == [-9]


def test_no_sources(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    (tmp_path / "f.py").write_text("f()")
    manifest = recording(path, file=str(tmp_path / "f.py"))
    manifest.parameters["sources"] = False
    finish(path, manifest, SourceStore(tmp_path))
    (row,) = pq.read_table(path / "files.parquet").to_pylist()
    assert (row["source"], row["size"], len(row["sha256"])) == (None, 3, 64)


def test_an_empty_spool_makes_an_empty_recording(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    manifest = new_manifest({})
    clock = manifest.clock
    claim(path, manifest, force=False)
    done = finish(path, manifest, SourceStore(tmp_path))
    assert (done.rows["cpu"], done.rows["processes"]) == (0, 0)
    assert json.loads((path / "manifest.json").read_text())["clock"] == clock


def check_unfinished(path: Path, manifest: Manifest, words: str) -> None:
    with pytest.raises(UnfinishedError, match=words):
        finish(path, manifest, SourceStore(path))
    assert not list(path.glob("*.parquet"))
    assert not list(path.glob(".tmp*"))
    assert len(list(path.glob("spool/*.seg"))) > 10


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    manifest = recording(path, samples=5000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        check_unfinished(path, manifest, "file too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert finish(path, manifest, SourceStore(path)).rows["cpu"] == 5000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small tmpfs is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "a.tacho"
    manifest = recording(path, samples=5000)
    rest = small_disk / "rest"
    fill(rest)
    check_unfinished(path, manifest, "no space left")
    rest.unlink()
    assert finish(path, manifest, SourceStore(path)).rows["cpu"] == 5000


def test_losses() -> None:
    specs = [
        LossSpec(0, "a", "loss", "samples that are gone (counted by the reader)", ""),
        LossSpec(1, "b", "note", "", ""),
    ]
    quality = [{"process": p, "loss": name, "count": 2} for p in (0, 1) for name in ("a", "b", "unknown")]
    assert losses(quality, specs) == {"samples that are gone": 4, "unknown": 4}


def test_words() -> None:
    done = Finished(rows={"cpu": 1, "waits": 1200}, size=1, lost={"waits whose stack changed": 1})
    assert recorded(done) == "1 CPU sample, 1,200 waits"
    full = Finished(
        rows={"cpu": 0, "waits": 0, "memory": 7, "allocations": 1, "copies": 12, "spans": 2}, size=1, lost={}
    )
    assert recorded(full) == "0 CPU samples, 7 footprints, 1 block, 12 copies, 2 spans"
    assert lost(done) == "lost: waits whose stack changed (1)"

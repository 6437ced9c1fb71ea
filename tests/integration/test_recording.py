"""What a recording is on disk: small, private, plain, and all that is left behind."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

MIXED = support.PROGRAMS / "mixed.py"
KB = 1024
MEMORY = ("memory", "allocations", "copies")


def size(recording: Path) -> int:
    return sum(path.stat().st_size for path in recording.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four seconds of one process at the default 100 Hz, in a folder that held nothing else."""
    folder = tmp_path_factory.mktemp("recording")
    done = support.record([MIXED, "4"], folder, "--no-sources")
    assert done == support.Outcome(0, "", "")
    return folder


@pytest.fixture(scope="module")
def recording(folder: Path) -> Path:
    return folder / "run.tacho"


def check_size(recording: Path, seconds: int, most: int, most_of_memory: int) -> None:
    assert len(support.rows(recording, "cpu")) > 20 * seconds  # there is something in it
    assert len(support.rows(recording, "allocations")) > seconds
    sizes = {path.name: path.stat().st_size for path in recording.iterdir()}
    memory = sum(sizes[f"{table}.parquet"] for table in MEMORY)
    # 1.3 KB of that are the digests of the tables, which the manifest has since format 1.5.
    assert sum(sizes.values()) - memory <= most, sizes
    assert memory <= most_of_memory, sizes


def test_four_seconds_take_44_kb_and_16_kb_for_memory(recording: Path) -> None:
    check_size(recording, 4, 44 * KB, 16 * KB)


@pytest.mark.slow
def test_ten_seconds_take_50_kb_and_2_kb_a_second_for_memory(tmp_path: Path) -> None:
    assert support.record([MIXED, "10"], tmp_path, "--no-sources").status == 0
    check_size(tmp_path / "run.tacho", 10, 50 * KB, 20 * KB)


@pytest.mark.slow
def test_growth_is_under_3_kb_a_second(recording: Path, tmp_path: Path) -> None:
    assert support.record([MIXED, "40"], tmp_path, "--no-sources", timeout=120).status == 0
    assert (size(tmp_path / "run.tacho") - size(recording)) / 36 < 3 * KB


def test_nothing_is_left_behind(folder: Path, recording: Path) -> None:
    assert [path.name for path in folder.iterdir()] == ["run.tacho"]
    names = {path.name for path in recording.iterdir()}
    shared = ("processes", "threads", "files", "codes", "stacks", "modules", "native_frames", "native_stacks")
    tables = (*shared, "cpu", "waits", "memory_parts", *MEMORY)
    assert names == {"manifest.json", *(f"{table}.parquet" for table in tables)}


def test_only_the_owner_reads_it(recording: Path) -> None:
    assert recording.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in recording.iterdir()} == {0o600}


PLAIN = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "tachograph":
            raise ImportError("tachograph is not here")
sys.meta_path.insert(0, Refuse())
import pandas
frame = pandas.read_parquet(sys.argv[1])
assert "tachograph" not in sys.modules
print(len(frame), sorted(frame.columns), int(frame["cpu_ns"].sum()))
"""


def test_pandas_reads_it_without_us(recording: Path) -> None:
    if subprocess.run([sys.executable, "-c", "import pandas"], capture_output=True, check=False).returncode:
        pytest.skip("pandas is not installed")
    cpu = recording / "cpu.parquet"
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(cpu)],
        cwd="/",
        env=support.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = support.rows(recording, "cpu")
    total = sum(row["cpu_ns"] for row in rows)
    assert done.stdout.strip() == f"{len(rows)} {sorted(rows[0])} {total}"


def test_a_zip_is_a_recording(recording: Path, tmp_path: Path) -> None:
    """With the folder inside or without it, and with no access to where it came from."""
    expected = support.analyze(recording, cwd=tmp_path)
    for name, inside in (("with.zip", "run.tacho/"), ("without.zip", "")):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in recording.iterdir():
                archive.write(path, inside + path.name)
        found = support.analyze(tmp_path / name, cwd=tmp_path)
        assert found["lines"] == expected["lines"]
        assert found["totals"] == expected["totals"]


def test_info_names_tables_and_sizes(recording: Path, tmp_path: Path) -> None:
    done = support.tachograph("info", recording, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("cpu", "waits", "native", "1.0", str(len(support.rows(recording, "cpu")))):
        assert word in done.stdout.replace(",", "")


def test_sources_are_those_of_files_with_samples(tmp_path: Path) -> None:
    """With sources, a line of the report has its text although the file is gone; secrets in argv are masked."""
    script = tmp_path / "moved.py"
    script.write_text("import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass  # here\n")
    done = support.record([script, "--password=hunter2", "--name", "open"], tmp_path, "--interval", "5")
    assert (done.status, done.stderr) == (0, "")
    script.unlink()
    recording = tmp_path / "run.tacho"
    # By file as well: the line by which recording is begun, in a .pth, may have a row of its own.
    lines = {(row["file"], row["line"]): row for row in support.analyze(recording, cwd=tmp_path)["lines"]}
    assert lines[str(script), 3]["source"].strip() == "while time.process_time() < end: pass  # here"
    stored = [row["path"] for row in support.rows(recording, "files") if row["source"] is not None]
    assert str(script) in stored
    manifest = (recording / "manifest.json").read_text(encoding="utf-8")
    assert "hunter2" not in manifest
    assert "open" in manifest


def test_environment_is_not_stored(tmp_path: Path) -> None:
    environment = support.environment(SOME_TOKEN="value-that-must-not-be-kept")
    assert support.record(["-c", "sum(range(10**6))"], tmp_path, env=environment).status == 0
    for path in (tmp_path / "run.tacho").iterdir():
        assert b"value-that-must-not-be-kept" not in path.read_bytes()


def test_a_program_that_changes_its_folder(tmp_path: Path) -> None:
    """A relative script path and a relative output stay where they were meant."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "script.py").write_text("import os\nos.chdir('elsewhere')\nsum(range(10**7))\n", encoding="utf-8")
    assert support.record(["script.py"], tmp_path).status == 0
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "run.tacho", "script.py"]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_default_output_is_new_each_time_and_found_again(tmp_path: Path) -> None:
    for _ in range(2):
        done = support.tachograph("record", "-q", "-c", "sum(range(10**7))", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert len([path for path in tmp_path.iterdir() if path.suffix == ".tacho"]) == 2
    done = support.tachograph("analyze", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_terminal_table_is_printed(recording: Path, tmp_path: Path) -> None:
    done = support.tachograph("analyze", recording, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mixed.py" in done.stdout
    assert len(done.stdout.splitlines()) <= 400


def test_what_recording_takes_of_a_program_that_sleeps(tmp_path: Path) -> None:
    """The recorder's thread wakes up less often while nothing changes, and its tables take what is used of them."""
    code = "import time\ntime.sleep(3)"
    assert support.record(["-c", code], tmp_path).status == 0
    cost = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))["sampler_cost"]
    (process,) = cost["processes"]
    # Every 40 ms in the mean once it has slowed down, every 10 ms before.
    awake_s = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["wall_s"] - 3
    assert 0 < process["wait_ticks"] < 3 * 25 + 50 + 200 * awake_s
    # Two segments are mapped from the beginning; tables for thousands of threads and blocks are not touched.
    assert 1 << 20 < process["own_bytes"] < 12 << 20
    told = support.tachograph("info", "run.tacho", cwd=tmp_path)
    assert "its memory   at most" in told.stdout


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    done = support.record(["-c", "print(sum(range(3_000_000)))", os.fsdecode(b"\xfe")], folder)
    assert done == support.Outcome(0, "4499998500000\n", "")
    readable = folder.rename(tmp_path / "d")  # pyarrow takes no such path
    assert support.rows(readable / "run.tacho", "cpu")

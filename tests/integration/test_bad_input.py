"""Bad input: one clear line, exit status 2, nothing started, nothing lost that was whole."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from integration import support

GOOD = "print('started')"


def command(*arguments: str | Path, cwd: Path) -> support.Outcome:
    done = support.tachograph(*arguments, cwd=cwd)
    return support.Outcome(done.returncode, done.stdout, done.stderr)


# ------------------------------------------------------------------ record


def refused(cwd: Path, sampler: str, *arguments: str | Path) -> str:
    """`record` with these arguments refuses in one line, and the program was not started."""
    outcome = command("record", "--sampler", sampler, *arguments, cwd=cwd)
    assert "started" not in outcome.stdout
    return support.one_line(outcome)


def test_missing_script(tmp_path: Path, sampler: str) -> None:
    assert "nowhere.py" in refused(tmp_path, sampler, "nowhere.py")
    assert not list(tmp_path.iterdir())


def test_directory_without_main(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "folder").mkdir()
    assert "folder" in refused(tmp_path, sampler, "folder")


def test_directory_with_main_is_a_program(tmp_path: Path, sampler: str) -> None:
    """Python runs a folder that has a __main__.py, so the recorder does."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text("import sys; print(sys.argv, sys.path[0])", encoding="utf-8")
    plain = support.bare(["folder", "x"], tmp_path)
    assert support.record(["folder", "x"], tmp_path, "--sampler", sampler) == plain


def test_unreadable_kinds_of_file(tmp_path: Path, sampler: str) -> None:
    """Not Python: refused in a line, or the interpreter's own complaint with its own status."""
    script = tmp_path / "picture.py"
    script.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 20)
    plain = support.bare([script], tmp_path)
    outcome = support.record([script], tmp_path, "--sampler", sampler)
    if outcome.status == 2:
        support.one_line(outcome, "picture.py")
    else:
        assert outcome == plain


def test_nothing_to_record(tmp_path: Path, sampler: str) -> None:
    outcome = command("record", "--sampler", sampler, cwd=tmp_path)
    assert outcome.status == 2
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("interval", ["0", "-5", "0.0000001", "1e12", "nan", "inf", "soon", ""])
def test_absurd_interval(tmp_path: Path, sampler: str, interval: str) -> None:
    assert "interval" in refused(tmp_path, sampler, "--interval", interval, "-c", GOOD).lower()
    assert not list(tmp_path.iterdir())


def test_output_exists(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "run.tacho").mkdir()
    (tmp_path / "run.tacho" / "precious").write_text("kept", encoding="utf-8")
    line = refused(tmp_path, sampler, "-o", "run.tacho", "-c", GOOD)
    assert "run.tacho" in line
    assert "--force" in line or "-f" in line
    assert (tmp_path / "run.tacho" / "precious").read_text(encoding="utf-8") == "kept"


def test_force_replaces_recordings_and_nothing_else(tmp_path: Path, sampler: str) -> None:
    """--force is for an old recording; a folder of something else is never emptied."""
    assert support.record(["-c", GOOD], tmp_path, "--sampler", sampler).status == 0
    first = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))["uuid"]
    assert support.record(["-c", GOOD], tmp_path, "--sampler", sampler, "-f").status == 0
    assert json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))["uuid"] != first
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("kept", encoding="utf-8")
    assert "other" in refused(tmp_path, sampler, "-f", "-o", "other", "-c", GOOD)
    assert (tmp_path / "other" / "precious").exists()


def test_failed_start_keeps_the_old_recording(tmp_path: Path, sampler: str) -> None:
    """--force with a script that is not there: the recording that was to be replaced is still whole."""
    assert support.record(["-c", GOOD], tmp_path, "--sampler", sampler).status == 0
    before = support.digests(tmp_path / "run.tacho")
    refused(tmp_path, sampler, "-f", "-o", "run.tacho", "nowhere.py")
    assert support.digests(tmp_path / "run.tacho") == before


@pytest.mark.parametrize("output", ["missing/folder/run.tacho", "file/run.tacho"])
def test_output_that_cannot_be_made(tmp_path: Path, sampler: str, output: str) -> None:
    (tmp_path / "file").write_text("a file", encoding="utf-8")
    outcome = command("record", "--sampler", sampler, "-o", output, "-c", GOOD, cwd=tmp_path)
    if output.startswith("file/"):
        support.one_line(outcome, "run.tacho")
        assert "started" not in outcome.stdout
    else:  # making the folders on the way is as good
        assert outcome.status in (0, 2)
        assert "Traceback" not in outcome.stderr


def test_output_in_a_folder_that_is_read_only(tmp_path: Path, sampler: str) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "closed" in refused(tmp_path, sampler, "-o", closed / "run.tacho", "-c", GOOD)


def test_no_file_system_for_output(tmp_path: Path, sampler: str) -> None:
    """A place that root cannot write to either."""
    refused(tmp_path, sampler, "-o", "/proc/run.tacho", "-c", GOOD)


def test_unknown_sampler_and_option(tmp_path: Path) -> None:
    for arguments in (("--sampler", "psychic", "-c", GOOD), ("--no-such-option", "-c", GOOD)):
        outcome = command("record", *arguments, cwd=tmp_path)
        assert outcome.status == 2
        assert outcome.stdout == ""
        assert "Traceback" not in outcome.stderr


# ------------------------------------------------------------------ reading


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small, good recording to spoil copies of."""
    folder = tmp_path_factory.mktemp("whole")
    code = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    sampler = "native" if support.native_recorder() else "signal"
    assert support.record(["-c", code], folder, "--sampler", sampler, "--interval", "5").status == 0
    return folder / "run.tacho"


READERS = (("analyze",), ("analyze", "--json", "-"), ("info",))
readers = pytest.mark.parametrize("reader", READERS, ids=" ".join)


@readers
def test_no_recording_in_the_folder(tmp_path: Path, reader: tuple[str, ...]) -> None:
    support.one_line(command(*reader, cwd=tmp_path), "recording")


@readers
@pytest.mark.parametrize("name", ["absent.tacho", "empty", "text.tacho", "text.zip", "other"])
def test_not_a_recording(tmp_path: Path, reader: tuple[str, ...], name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.tacho").write_text("not a recording", encoding="utf-8")
    (tmp_path / "text.zip").write_text("PK not a zip", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text('{"name": "a web application"}', encoding="utf-8")
    support.one_line(command(*reader, name, cwd=tmp_path), name)


def truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for index in range(0, len(data), 7):
        data[index] ^= 0xFF
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILS: list[Callable[[Path], None]] = [truncate, flip, empty, folder, Path.unlink]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: spoil.__name__)
@pytest.mark.parametrize("name", ["manifest.json", "cpu.parquet", "stacks.parquet", "codes.parquet"])
def test_spoilt_file(whole: Path, tmp_path: Path, name: str, spoil: Callable[[Path], None]) -> None:
    recording = shutil.copytree(whole, tmp_path / "run.tacho")
    spoil(recording / name)
    support.one_line(command("analyze", recording, cwd=tmp_path), "run.tacho")


def rewritten(whole: Path, tmp_path: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    recording: Path = shutil.copytree(whole, tmp_path / "run.tacho")
    path = recording / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    return recording


def replaced(table: pa.Table, column: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(column), column, values)


CHANGES: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    "text for numbers": ("cpu", lambda t: replaced(t, "cpu_ns", pa.array(["much"] * len(t)))),
    "column missing": ("cpu", lambda t: t.drop_columns(["thread"])),
    "null weight": ("cpu", lambda t: replaced(t, "cpu_ns", pa.array([None] * len(t), pa.int64()))),
    "stack out of range": ("cpu", lambda t: replaced(t, "stack", pa.array([4_000_000_000] * len(t), pa.uint32()))),
    "thread out of range": ("cpu", lambda t: replaced(t, "thread", pa.array([99] * len(t), pa.uint32()))),
    "parent behind child": (
        "stacks",
        lambda t: replaced(t, "parent", pa.array([len(t) - 1] * len(t), pa.uint32())),
    ),
    "code out of range": ("stacks", lambda t: replaced(t, "code", pa.array([10**6] * len(t), pa.uint32()))),
    "ids not dense": ("stacks", lambda t: replaced(t, "stack", pa.array(range(5, 5 + len(t)), pa.uint32()))),
    "file out of range": ("codes", lambda t: replaced(t, "file", pa.array([10**6] * len(t), pa.uint32()))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_tables_that_lie(whole: Path, tmp_path: Path, name: str) -> None:
    """Refused in one line, or read with the lie told in the quality ledger; never believed and never a traceback."""
    table, change = CHANGES[name]
    recording = rewritten(whole, tmp_path, table, change)
    outcome = command("analyze", recording, "--json", "-", cwd=tmp_path)
    if outcome.status == 0:
        assert json.loads(outcome.stdout)["quality"]["losses"], name
    else:
        support.one_line(outcome, f"{table}.parquet")


def test_an_enumerator_of_a_later_version_is_read(whole: Path, tmp_path: Path) -> None:
    """Minor versions may add values to enumerations: the rows stay, and what they weigh."""
    recording = rewritten(
        whole, tmp_path, "cpu", lambda t: replaced(t, "stack_state", pa.array([200] * len(t), pa.uint8()))
    )
    good = support.analyze(whole, cwd=tmp_path)["totals"]["cpu_s"]
    assert support.analyze(recording, cwd=tmp_path)["totals"]["cpu_s"] == pytest.approx(good)


def test_a_line_table_of_rubbish_costs_lines_only(whole: Path, tmp_path: Path) -> None:
    change: Callable[[pa.Table], pa.Table] = lambda t: replaced(  # noqa: E731
        t, "line_table", pa.array([b"\xff" * 50] * len(t), pa.binary())
    )
    recording = rewritten(whole, tmp_path, "codes", change)
    outcome = command("analyze", recording, "--json", "-", cwd=tmp_path)
    assert outcome.status in (0, 2)
    assert "Traceback" not in outcome.stderr
    if outcome.status == 0:
        good = support.analyze(whole, cwd=tmp_path)["totals"]
        assert json.loads(outcome.stdout)["totals"]["python_s"] == pytest.approx(good["python_s"])


@readers
def test_higher_major_version(whole: Path, tmp_path: Path, reader: tuple[str, ...]) -> None:
    recording = shutil.copytree(whole, tmp_path / "run.tacho")
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    manifest["format_version"] = "2.0"
    (recording / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    support.one_line(command(*reader, recording, cwd=tmp_path), "2.0")


def test_newer_minor_version_with_unknown_things_is_read(whole: Path, tmp_path: Path) -> None:
    recording = rewritten(whole, tmp_path, "cpu", lambda t: t.append_column("colour", pa.array(["red"] * len(t))))
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    manifest["format_version"] = "1.9"
    manifest["weather"] = {"rain": True}
    (recording / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    pq.write_table(pa.table({"x": [1]}), recording / "dreams.parquet")
    assert support.analyze(recording, cwd=tmp_path)["totals"] == support.analyze(whole, cwd=tmp_path)["totals"]


def test_zip_that_climbs_out(whole: Path, tmp_path: Path) -> None:
    archive = tmp_path / "evil.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for path in whole.iterdir():
            target.write(path, path.name)
        target.writestr("../escaped.txt", "outside")
        target.writestr("/tmp/escaped-absolute.txt", "outside")
    support.one_line(command("analyze", archive, cwd=tmp_path), "evil.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["evil.zip"]


def test_zip_bomb(whole: Path, tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in whole.iterdir():
            if path.name != "manifest.json":
                target.write(path, path.name)
        with target.open("manifest.json", "w", force_zip64=True) as member:
            for _ in range(300):
                member.write(bytes(1 << 20))
    support.one_line(command("analyze", archive, cwd=tmp_path), "bomb.zip")


@pytest.mark.parametrize(
    "options",
    [
        ("--from", "5", "--to", "2"),
        ("--from", "yesterday"),
        ("--top", "-3"),
        ("--sort", "beauty"),
        ("--thread", "no such thread"),
        ("--attribution", "astrology"),
        ("--json", "/nowhere/at/all.json"),
    ],
    ids=" ".join,
)
def test_bad_options_of_analyze(whole: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    outcome = command("analyze", whole, *options, cwd=tmp_path)
    assert outcome.status == 2
    assert outcome.stdout == ""
    assert "Traceback" not in outcome.stderr
    assert options[0].lstrip("-") in outcome.stderr or options[-1] in outcome.stderr


# ------------------------------------------------------------------ recover


@pytest.mark.parametrize("name", ["absent.tacho", "empty", "file.tacho"])
def test_recover_what_is_no_recording(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.tacho").write_text("text", encoding="utf-8")
    support.one_line(command("recover", name, cwd=tmp_path), name)


def test_recover_a_whole_recording_changes_nothing(whole: Path, tmp_path: Path) -> None:
    recording = shutil.copytree(whole, tmp_path / "run.tacho")
    before = support.digests(recording)
    outcome = command("recover", recording, cwd=tmp_path)
    assert outcome.status in (0, 2)
    assert len((outcome.stdout + outcome.stderr).strip().splitlines()) <= 1
    assert support.digests(recording) == before


def test_recover_a_spool_of_rubbish(whole: Path, tmp_path: Path) -> None:
    """Bytes of no meaning in the spool: nothing is believed, nothing crashes."""
    recording = shutil.copytree(whole, tmp_path / "run.tacho")
    for path in recording.glob("*.parquet"):
        path.unlink()
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    manifest.update(state="recording", tables={})
    (recording / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (recording / "spool").mkdir()
    (recording / "spool" / "12-34.ctl").write_bytes(os.urandom(4096))
    (recording / "spool" / "12-34.000000.seg").write_bytes(b"TACHSEG1" + os.urandom(1 << 16))
    for name in ("analyze", "recover"):
        outcome = command(name, recording, cwd=tmp_path)
        assert outcome.status in (0, 2)
        assert "Traceback" not in outcome.stderr

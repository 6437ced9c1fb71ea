"""Opening recordings: archives, unfinished ones, vectors, and everything that may be wrong with one."""

from __future__ import annotations

import io
import json
import math
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.recording.sources import is_generated
from tachograph.analyzer.render.terminal.report import show
from tachograph.cli import main
from tachograph.format import Container, FormatError
from unit.analyzer.recordings import Builder

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"


def answer(path: Path) -> Profile:
    with Recording.open(path) as recording:
        return build_profile(recording, Question(scope="all"))


@pytest.fixture
def written(builder: Builder) -> Path:
    stack = builder.stack((builder.code(builder.file("/srv/a.py", "a\nb\n")), 0))
    builder.cpu(stack)
    builder.wait(stack, 0, 5)
    return builder.write()


def files_of(path: Path) -> dict[str, bytes]:
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_small_tables_are_opened_once(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    original = Container.parquet

    def counted(self: Container, name: str, *more: Any) -> pq.ParquetFile:
        opened.append(name)
        return original(self, name, *more)

    monkeypatch.setattr(Container, "parquet", counted)
    with Recording.open(written) as recording:
        assert recording.rows("cpu") == 1
        assert [batch.num_rows for batch in recording.batches("cpu", ["time_ns"])] == [1]
        assert opened.count("cpu.parquet") == 1
        assert recording.rows("waits") == 1  # its file is left open, until the recording is closed
        ready = dict(recording.tables._ready)
    assert "waits" in ready
    assert all(file.closed for file in ready.values())


@pytest.mark.parametrize("name", ["whole", "extra", "killed"])
def test_vectors(name: str) -> None:
    expected = json.loads((VECTORS / f"{name}.expected.json").read_text("utf-8"))
    profile = answer(VECTORS / f"{name}.tacho")
    assert profile.totals.samples == expected["rows"]["cpu"]
    if "sums" in expected:
        assert profile.totals.cpu_s == pytest.approx(expected["sums"]["cpu_ns"] / 1e9)
        assert profile.totals.wait_s == pytest.approx(expected["sums"]["off_cpu_ns"] / 1e9)
    assert profile.lines["cpu_s"].sum() == pytest.approx(profile.totals.cpu_s)


@pytest.mark.parametrize("name", ["whole", "extra", "weights", "attribution", "window"])
def test_time_by_line_is_what_the_vector_says(name: str) -> None:
    derived = json.loads((VECTORS / f"{name}.expected.json").read_text("utf-8"))["derived"]
    profile = answer(VECTORS / f"{name}.tacho")
    found = {(row["file"], row["line"]): row for row in profile.lines.to_dict("records")}
    for wanted in derived["lines"]:
        if wanted["line"] is not None:
            row = found[wanted["file"], wanted["line"]]
            for part in ("cpu", "python", "native", "kernel", "unknown"):
                seconds = 0 if math.isnan(row[f"{part}_s"]) else row[f"{part}_s"]  # of a line of which nothing is known
                assert seconds == pytest.approx(wanted.get(f"{part}_ns", 0) / 1e9, abs=1e-9), (wanted, part)


def test_vector_of_a_newer_major_version() -> None:
    with pytest.raises(FormatError, match="use a newer tachograph"):
        answer(VECTORS / "newer-major.tacho")


def test_an_unfinished_recording_is_read_and_left_alone(tmp_path: Path) -> None:
    copy = tmp_path / "killed.tacho"
    shutil.copytree(VECTORS / "killed.tacho", copy)
    before = files_of(copy)
    profile = answer(copy)
    assert profile.quality.state == "recording"
    assert any("never finished" in note for note in profile.quality.notes)
    assert files_of(copy) == before
    archive = shutil.make_archive(str(tmp_path / "killed.tacho"), "zip", copy)
    assert answer(Path(archive)).totals == profile.totals


def test_an_unfinished_recording_without_its_spool(written: Path) -> None:
    manifest = json.loads((written / "manifest.json").read_text("utf-8"))
    (written / "manifest.json").write_text(json.dumps({**manifest, "state": "recording"}), "utf-8")
    with pytest.raises(FormatError, match="its spool is missing"):
        answer(written)


@pytest.mark.parametrize("folder", ["", "run.tacho/"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives(written: Path, tmp_path: Path, folder: str, compression: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as archive:
        for name, data in files_of(written).items():
            archive.writestr(folder + name, data)
    assert answer(tmp_path / "a.zip").totals == answer(written).totals


def test_an_archive_with_a_name_that_leaves_it(written: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, data in files_of(written).items():
            archive.writestr(name, data)
        archive.writestr("../evil", b"")
    with pytest.raises(FormatError, match="unsafe name"):
        answer(tmp_path / "a.zip")


def test_a_table_that_is_not_the_one_of_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "changed.tacho"
    shutil.copytree(VECTORS / "attribution.tacho", path)
    with Recording.open(path) as recording:
        assert recording.verify() == (len(recording.manifest.tables),) * 2
    said = CliRunner().invoke(main, ["info", "--verify", str(path)])
    assert (said.exit_code, said.stderr.split()[0]) == (0, str(len(recording.manifest.tables)))
    table = pq.read_table(path / "threads.parquet")
    pq.write_table(table, path / "threads.parquet", compression="none", store_schema=False)
    with Recording.open(path) as recording, pytest.raises(FormatError, match=r"^threads\.parquet: its SHA-256"):
        recording.verify()
    refused = CliRunner().invoke(main, ["info", "--verify", str(path)])
    assert (refused.exit_code, "threads.parquet: its SHA-256" in refused.stderr) == (2, True)


def test_an_older_recording_has_no_checksums() -> None:
    with Recording.open(VECTORS / "whole.tacho") as recording:
        assert recording.verify() == (len(recording.manifest.tables), 0)


def test_extra_columns_and_other_encodings_are_read(written: Path) -> None:
    path = written / "threads.parquet"
    table = pq.read_table(path)
    index = table.column_names.index("name")
    table = table.set_column(index, "name", table.column("name").dictionary_encode()).append_column("new", table["tid"])
    pq.write_table(table, path)
    files = pq.read_table(written / "files.parquet")
    files = files.set_column(1, "path", files.column("path").cast(pa.large_string()))
    pq.write_table(files, written / "files.parquet")
    assert answer(written).threads["name"].tolist() == ["MainThread"]


@pytest.mark.parametrize("table", ["threads", "cpu"])
def test_a_footer_that_tells_of_more_rows_than_there_are(written: Path, table: str) -> None:
    """By that number it was judged what refers to the table."""
    path = written / f"{table}.parquet"
    rows = pq.read_metadata(path).num_rows
    assert rows < 32
    # Field 3 of the footer, a 64-bit number in Thrift's zigzag, before field 4, a list.
    data, told = path.read_bytes(), bytes([0x16, 2 * rows, 0x19])
    assert data.count(told) == 1
    path.write_bytes(data.replace(told, bytes([0x16, 2 * rows + 2, 0x19])))
    with pytest.raises(FormatError, match=f"{table}.parquet: has {rows + 1} rows, and the manifest says {rows}"):
        answer(written)
    manifest = json.loads((written / "manifest.json").read_text(encoding="utf-8"))
    manifest["tables"][table]["rows"] = rows + 1
    (written / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(FormatError, match=f"{table}.parquet: has {rows} rows, and its footer says {rows + 1}"):
        answer(written)


def replace(path: Path, table: str, column: str, values: list[Any], kind: str | None = None) -> None:
    file = path / f"{table}.parquet"
    old = pq.read_table(file)
    index = old.column_names.index(column)
    array = pa.array(values, pa.type_for_alias(kind) if kind else old.schema.field(column).type)
    pq.write_table(old.set_column(index, column, array), file)


def truncate(path: Path) -> None:
    data = (path / "cpu.parquet").read_bytes()
    (path / "cpu.parquet").write_bytes(data[: len(data) // 2])


def scramble(path: Path) -> None:
    data = bytearray((path / "cpu.parquet").read_bytes())
    data[20 : len(data) // 2] = b"\xff" * (len(data) // 2 - 20)
    (path / "cpu.parquet").write_bytes(data)


def drop_column(path: Path) -> None:
    table = pq.read_table(path / "cpu.parquet")
    pq.write_table(table.drop_columns(["stack"]), path / "cpu.parquet")


def not_utf8(path: Path) -> None:
    table = pq.read_table(path / "files.parquet")
    array = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(table.set_column(1, "path", array), path / "files.parquet")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing table": (lambda path: (path / "codes.parquet").unlink(), "codes.parquet"),
    "empty table": (lambda path: (path / "codes.parquet").write_bytes(b""), "codes.parquet"),
    "truncated table": (truncate, "cpu.parquet"),
    "scrambled table": (scramble, "cpu.parquet"),
    "missing column": (drop_column, "cpu.parquet.*stack"),
    "wrong type": (lambda path: replace(path, "cpu", "stack", ["a"], "string"), "cpu.parquet.*stack.*string"),
    "null": (lambda path: replace(path, "cpu", "thread", [None]), "cpu.parquet.*thread.*null"),
    "id out of range": (lambda path: replace(path, "cpu", "stack", [7]), "cpu.parquet.*stack.*7.*stacks"),
    "thread out of range": (lambda path: replace(path, "waits", "thread", [1]), "waits.parquet.*thread.*threads"),
    "code out of range": (lambda path: replace(path, "stacks", "code", [1]), "stacks.parquet.*code.*codes"),
    "ids that are not rows": (lambda path: replace(path, "stacks", "stack", [5]), "stacks.parquet.*stack"),
    "parent that is a child": (lambda path: replace(path, "stacks", "parent", [0]), "stacks.parquet.*parent"),
    "negative time": (lambda path: replace(path, "cpu", "cpu_ns", [-5]), "table cpu, column cpu_ns: -5 ns"),
    "absurd time": (lambda path: replace(path, "waits", "off_cpu_ns", [1 << 62]), "table waits, column off_cpu_ns"),
    "text that is none": (not_utf8, "files.parquet.*path"),
    "no manifest": (lambda path: (path / "manifest.json").unlink(), "manifest.json"),
    "no JSON": (lambda path: (path / "manifest.json").write_text("{"), "manifest.json"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_recordings_are_one_line(written: Path, case: str) -> None:
    damage, message = BAD[case]
    damage(written)
    with pytest.raises(FormatError, match=message) as caught:
        answer(written)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["nothing", "file", "folder", "empty zip"])
def test_what_is_no_recording(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "file":
        path.write_text("hello")
    elif kind == "folder":
        path.mkdir()
    elif kind == "empty zip":
        zipfile.ZipFile(path, "w").close()
    with pytest.raises(FormatError):
        answer(path)


@pytest.mark.parametrize(
    ("path", "generated"),
    [
        ("/srv/templates/page.html", True),
        ("/srv/mail.J2", True),
        ("C:\\srv\\page.mako", True),
        ("/srv/app.py", False),
        ("/srv/bin/tool", False),
        ("<template>", False),
        ("/srv/fast.pyx", False),
    ],
)
def test_generated_code_is_known_by_its_file(path: str, generated: bool) -> None:
    assert is_generated(path) is generated


def test_generated_code_that_tells_its_lines_is_on_those_of_its_template(builder: Builder) -> None:
    """Jinja's pairs, of line 2 of the template and line 5 of what was generated; what comes before is on line 1."""
    template = builder.file("/srv/templates/page.html", "<html>\n{{ row }}\n\n{{ end }}\n</html>\n")
    root = builder.code(template, "root", first_line=3, template_lines="2=5&4=9")
    for generated in (3, 5, 5, 8, 9, 30):
        builder.cpu(builder.stack((root, generated - 3)))
    silent = builder.code(template, "<module>")
    builder.cpu(builder.stack((silent, 2)))
    with Recording.open(builder.write()) as recording:
        profile = build_profile(recording, Question())
        out = io.StringIO()
        show(profile, Console(file=out, width=100, color_system=None))
    lines = profile.lines[profile.lines["line"].notna()]
    assert dict(zip(lines["line"], lines["samples"], strict=True)) == {1: 1, 2: 3, 4: 2}
    assert list(lines.sort_values("line")["source"]) == ["<html>", "{{ row }}", "{{ end }}"]
    functions = profile.functions.set_index("function")["line"]
    assert functions["root"] == 1
    assert "generated code" not in out.getvalue()


@pytest.mark.parametrize("text", ["", "2", "2=", "a=5", "2=5&", "2=5&3=4", "2=5;4=9", "99999999999=1"])
def test_lines_of_a_template_that_are_none(builder: Builder, text: str) -> None:
    template = builder.file("/srv/page.html", "{{ one }}\n{{ two }}\n")
    builder.cpu(builder.stack((builder.code(template, "root", template_lines=text), 1)))
    with Recording.open(builder.write()) as recording:
        profile = build_profile(recording, Question())
    assert profile.lines["line"].tolist() == [2]
    assert profile.sources.generated == {"/srv/page.html"}


def test_generated_code_has_no_lines_of_its_template(builder: Builder) -> None:
    """Line 2 of what Jinja made of a template is not line 2 of the template."""
    template = builder.file("/srv/templates/page.html", "<html>\n{{ row }}\n</html>\n")
    builder.cpu(builder.stack((builder.code(template, "root"), 1)))
    with Recording.open(builder.write()) as recording:
        profile = build_profile(recording, Question())
        out = io.StringIO()
        show(profile, Console(file=out, width=100, color_system=None))
    assert profile.lines["source"].isna().all()
    assert "in root, generated code" in out.getvalue()
    assert "{{ row }}" not in out.getvalue()

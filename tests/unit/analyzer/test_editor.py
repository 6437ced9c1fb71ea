"""The language server: figures at the right lines of the right documents, and nothing but plain text."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tachograph.analyzer.commands.editor.annotations import Mark, Reading
from tachograph.analyzer.profile.question import Question
from tachograph.analyzer.recording.question_options import Sort
from tachograph.cli import main

from .recordings import Builder

VECTORS = Path(__file__).resolve().parents[3] / "format-spec" / "vectors"
SOURCE = '"""Adds squares."""\n\n\ndef work(n):\n    total = 0\n    for i in range(n):\n        total += i * i\n'
HOSTILE = "[x](command:delete)<img src=x>"
FIGURES = "40 % CPU · 67.1 MB at peak · 3.15 MB copied"


@pytest.fixture(scope="module")
def reading() -> Reading:
    return Reading.of(VECTORS / "memory.tacho", Question())


@pytest.fixture(scope="module")
def source(reading: Reading) -> str:
    (text,) = (file.text for file in reading.run.files if file.path == "/srv/app/main.py")
    assert text is not None
    return text


def test_figures_are_those_of_the_profile(reading: Reading, source: str) -> None:
    document = reading.document("/home/me/app/main.py", source)
    assert document is not None
    assert list(document.hints())[:2] == [Mark(6, "40 % CPU"), Mark(7, FIGURES)]
    assert next(iter(document.lenses())) == Mark(4, "81 % CPU with its calls · 81 % self")
    hover = document.hover(7) or ""
    row = next(row for row in reading.run.profile.frames.lines.rows() if row["line"] == 7)
    assert f"CPU {row['cpu_share'] * 100:.1f} % ({row['cpu_share_low'] * 100:.1f}-" in hover
    assert "calls dgemm_kernel<double>(int, double const*) in libblas: " in hover
    assert document.hover(1) is None


def test_a_hint_is_short(reading: Reading, source: str) -> None:
    """VS Code cuts what is longer than 43 characters; the last figures are left out whole."""
    row = {
        **next(row for row in reading.run.profile.frames.lines.rows() if row["line"] == 7),
        "cpu_s": 2.0,
        "native_s": 1.5,
    }
    assert reading._figures(row) == "40 % CPU, native · 67.1 MB at peak"


def test_edited_lines_are_followed(reading: Reading, source: str) -> None:
    edited = "# a new first line\n" + source.replace("        total += i * i\n", "        print()\n" * 9)
    document = reading.document("/home/me/app/main.py", edited)
    assert document is not None
    lines = [mark.line for mark in document.hints()]
    assert 7 in lines  # the loop's head
    assert FIGURES not in [mark.text for mark in document.hints()]  # its body is gone
    assert next(iter(document.lenses())).line == 5


@pytest.mark.parametrize("path", ["/home/me/app/other.py", "/srv/app/main.pyc"])
def test_another_file_shows_nothing(reading: Reading, source: str, path: str) -> None:
    assert reading.document(path, source) is None


@pytest.mark.parametrize("path", ["/home/me/main.py", "/srv/app/main.py"])
def test_another_text_shows_nothing(reading: Reading, path: str) -> None:
    assert reading.document(path, "import this\nwork(1000)\n") is None


def test_one_metric(source: str) -> None:
    document = Reading.of(VECTORS / "memory.tacho", Question(), sort=Sort.COPIES).document("/a/app/main.py", source)
    assert document is not None
    assert [mark.text for mark in document.hints()] == ["3.15 MB copies"]


def build(path: Path, slow_ms: int) -> Path:
    builder = Builder(path)
    file = builder.file("/srv/app/main.py", SOURCE)
    code = builder.code(file, "work", first_line=4)
    builder.cpu(builder.stack((code, 2)), ms=1000)
    builder.cpu(builder.stack((code, 3)), ms=slow_ms)
    return builder.write()


def test_hints_tell_the_difference(tmp_path: Path) -> None:
    base, new = build(tmp_path / "a.tacho", 500), build(tmp_path / "b.tacho", 1500)
    document = Reading.of(new, Question(), base=base).document("/home/me/app/main.py", SOURCE)
    assert document is not None
    assert list(document.hints()) == [Mark(7, "+1.00 s CPU (not judged)")]
    assert "compared with a.tacho: +1.00 s CPU (not judged)" in (document.hover(7) or "")


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("kept.append(bytes(500_000))", "Instead: keep what is needed of each "),
        ("remember(bytes(500_000))", "Instead: find what still refers to it"),
    ],
)
def test_leaks_are_remarks_with_their_remedy(tmp_path: Path, line: str, remedy: str) -> None:
    text = f"kept = []\nwhile True:\n    {line}\n"
    builder = Builder(tmp_path / "leak.tacho")
    stack = builder.stack((builder.code(builder.file("/srv/app/main.py", text), "<module>"), 2))
    builder.memory("start", 0, 0)
    for at in range(0, 10_000, 50):
        builder.block(stack, 500_000, at)
    for at in range(100, 10_001, 100):
        event = "tick" if at < 10_000 else "end"
        builder.memory(event, at, at // 50 * 500_000, obj_allocated_bytes=1_000_000)
    document = Reading.of(builder.write(), Question()).document("/home/me/app/main.py", text)
    assert document is not None
    (mark,) = (mark for mark in document.remarks() if mark.rule == "leak")
    assert mark.line == 3
    assert mark.text.startswith("10 MB/s not given back, likelihood ")
    assert remedy in mark.text


def served(folder: Path, talk: Callable[[Any], Awaitable[None]], *arguments: str) -> None:
    """Starts the command, and lets ``talk`` use it as an editor does."""
    lsp = pytest.importorskip("pygls.lsp.client")
    types = pytest.importorskip("lsprotocol.types")

    async def session() -> None:
        client = lsp.LanguageClient("an editor", "1")
        for request in (types.WORKSPACE_INLAY_HINT_REFRESH, types.WORKSPACE_CODE_LENS_REFRESH):
            client.feature(request)(lambda *_: None)
        await client.start_io(sys.executable, "-m", "tachograph", "lsp", *arguments, cwd=str(folder))
        try:
            refreshes = types.WorkspaceClientCapabilities(
                inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
                code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
            )
            capabilities = types.ClientCapabilities(workspace=refreshes)
            await client.initialize_async(types.InitializeParams(capabilities, root_uri=folder.as_uri()))
            client.initialized(types.InitializedParams())
            await talk(client)
            await client.shutdown_async(None)
            client.exit(None)
        finally:
            await client.stop()

    # In a thread of its own: tests with a browser leave an event loop running in this one.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, asyncio.wait_for(session(), 60)).result()


@pytest.mark.recording
def test_an_editor_is_served(tmp_path: Path) -> None:
    types = pytest.importorskip("lsprotocol.types")
    (tmp_path / "made").mkdir()
    shutil.copytree(build(tmp_path / "made" / "a.tacho", 500), tmp_path / "a.tacho")
    uri = (tmp_path / "app" / "main.py").as_uri()  # There is no such file on the disk.
    everything = types.Range(types.Position(0, 0), types.Position(99, 0))

    async def talk(client: Any) -> None:
        identity = types.TextDocumentIdentifier(uri)

        async def hints(until: str) -> list[Any]:
            for _ in range(200):
                found = await client.text_document_inlay_hint_async(types.InlayHintParams(identity, everything))
                if any(until == hint.label for hint in found or ()):
                    return list(found)
                await asyncio.sleep(0.05)
            raise AssertionError(f"no hint {until!r}, but {[hint.label for hint in found or ()]}")

        item = types.TextDocumentItem(uri, types.LanguageKind.Python, 1, SOURCE.replace("i * i", "i * i  # 𝄞"))
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        slow = next(hint for hint in await hints("33 % CPU") if hint.label == "33 % CPU")
        assert slow.position == types.Position(6, len("        total += i * i  # 𝄞") + 1)  # UTF-16
        lenses = await client.text_document_code_lens_async(types.CodeLensParams(identity))
        assert [(lens.range.start.line, lens.command.title) for lens in lenses] == [
            (3, "100 % CPU with its calls · 100 % self")
        ]
        hover = await client.text_document_hover_async(types.HoverParams(identity, types.Position(6, 9)))
        assert hover.contents.kind == types.MarkupKind.PlainText
        assert "CPU 33.3 % (" in hover.contents.value

        shutil.copytree(build(tmp_path / "made" / "b.tacho", 3000), tmp_path / "b.tacho")
        os.utime(tmp_path / "b.tacho")
        await hints("75 % CPU")  # A new recording is shown by itself.

        async def command(name: str, *values: str) -> Any:
            return await client.workspace_execute_command_async(
                types.ExecuteCommandParams(f"tachograph.{name}", list(values))
            )

        await command("chooseRecording", "a.tacho")
        await hints("33 % CPU")
        await command("chooseMetric", "cpu")
        await hints("0.50 s cpu")
        await command("chooseRecording", "b.tacho")
        await command("compareWith", "a.tacho")
        await hints("+2.50 s CPU (not judged)")

    served(tmp_path, talk)


@pytest.mark.recording
def test_names_in_a_recording_stay_text(tmp_path: Path) -> None:
    types = pytest.importorskip("lsprotocol.types")
    builder = Builder(tmp_path / "a.tacho")
    code = builder.code(builder.file("/srv/app/main.py", SOURCE), "work", first_line=4)
    outside = builder.code(builder.file("/usr/lib/python3.13/json.py", SOURCE), HOSTILE)
    builder.cpu(builder.stack((code, 3), (outside, 0)), ms=1000)
    builder.write()
    uri = (tmp_path / "app" / "main.py").as_uri()

    async def talk(client: Any) -> None:
        item = types.TextDocumentItem(uri, types.LanguageKind.Python, 1, SOURCE)
        client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        place = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(6, 9))
        for _ in range(200):
            if (hover := await client.text_document_hover_async(place)) is not None:
                break
            await asyncio.sleep(0.05)
        assert hover.contents.kind == types.MarkupKind.PlainText
        assert "command:delete" in hover.contents.value
        assert "](" not in hover.contents.value

    served(tmp_path, talk, str(tmp_path / "a.tacho"))


def test_what_is_missing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(main, ["lsp", str(tmp_path / "nothing")])
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
    monkeypatch.setitem(sys.modules, "pygls", None)
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.delitem(sys.modules, "tachograph.analyzer.commands.editor.language_server", raising=False)
    done = CliRunner().invoke(main, ["lsp"])
    assert done.exit_code == 2
    assert done.output == "tachograph: 'tachograph lsp' needs pygls: pip install 'tachograph[editor]'\n"

"""The language server: annotations of open documents, commands that change them, and the watch for new recordings.

It reads the documents that the editor sends, and recordings; no other file. Everything it sends is plain text: what a
client might take for a link or a command is taken out (``plain``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from tachograph import __version__
from tachograph.format import FormatError

from ...profile.question import Question
from ...recording.opened import Recording
from ...recording.question_options import Sort
from ...recording.text import printable
from ...samples.summary import ALL, PROJECT
from ..common import recordings_here
from .annotations import Document, Mark, Reading

EVERY_S = 1.0
"""Seconds between two looks for a new recording."""
OFFERED = 9
"""Recordings that a client is asked to choose from, the newest."""

T = TypeVar("T")


def plain(text: str) -> str:
    """A text in which no editor finds a link or an icon: some look for them in texts that are to be plain."""
    return text.replace("](", "] (").replace("$(", "$ (")


@dataclass(frozen=True)
class Settings:
    """The user's choice; None stands for the newest recording, all metrics, the usual scope, no comparison."""

    recording: Path | None = None
    sort: Sort | None = None
    scope: str | None = None
    base: Path | None = None


@dataclass(frozen=True)
class Version:
    """A recording as it was when it was looked at: another one of the same path is read again."""

    path: Path
    times: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> Version:
        """The version of now.

        Errors:
            OSError: it is gone.
        """
        manifest = path / "manifest.json"
        return cls(path, tuple(each.stat().st_mtime_ns for each in (path, manifest) if each.exists()))


class EditorServer(LanguageServer):
    """Serves one client. ``place`` is a recording, or a folder whose newest recording is shown."""

    def __init__(self, place: Path | None) -> None:
        super().__init__("tachograph", __version__)
        self._place = place
        self._settings = Settings()
        self._reading: Reading | None = None
        self._shown: tuple[Version, Settings] | None = None
        self._documents: dict[str, tuple[Reading, int | None, Document | None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    @property
    def folder(self) -> Path:
        """The folder of the recordings."""
        place = self._place or Path(self.workspace.root_path or ".")
        return place if _is_folder(place) else place.parent

    def start_watch(self) -> None:
        """Looks for a recording now, and then again and again."""
        self._watch = asyncio.get_running_loop().create_task(self._watching())

    async def _watching(self) -> None:
        while True:
            await self.update()
            await asyncio.sleep(EVERY_S)

    async def update(self) -> None:
        """Reads the recording that is to be shown, unless it is shown already; one that is being written is not."""
        async with self._one_at_a_time:
            settings = self._settings
            try:
                version = await asyncio.to_thread(self._newest)
                if version is None or (version, settings) == self._shown:
                    return
                self._shown = (version, settings)
                reading = await asyncio.to_thread(_read, version.path, settings)
            except (FormatError, OSError) as error:
                self.window_log_message(types.LogMessageParams(types.MessageType.Warning, plain(str(error))))
                return
            if reading is None:  # Its manifest changes when it is complete.
                return
            self._reading = reading
            self._documents.clear()
        self.refresh()

    def _newest(self) -> Version | None:
        """The recording to show."""
        chosen = self._settings.recording
        if chosen is None and self._place is not None and not _is_folder(self._place):
            chosen = self._place
        recordings = [chosen] if chosen is not None else recordings_here(self.folder)
        return Version.of(recordings[-1]) if recordings else None

    def refresh(self) -> None:
        """Sends remarks of all documents, and has the client ask for hints and lenses again."""
        for uri in list(self.workspace.text_documents):
            self.send_remarks(uri)
        workspace = self.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def send_remarks(self, uri: str) -> None:
        """Sends suggestions, leaks and repeated work of a document."""
        text = self.workspace.get_text_document(uri)
        remarks = [
            types.Diagnostic(
                range=_whole_line(text, mark.line),
                message=plain(mark.text),
                severity=types.DiagnosticSeverity.Information,
                code=mark.rule,
                source="tachograph",
            )
            for mark in self.marks(uri, Document.remarks)
        ]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=remarks))

    def document(self, uri: str) -> Document | None:
        """The annotations of an open document."""
        path = to_fs_path(uri)
        if self._reading is None or path is None or uri not in self.workspace.text_documents:
            return None
        text = self.workspace.get_text_document(uri)
        kept = self._documents.get(uri)
        if kept is None or kept[:2] != (self._reading, text.version):
            kept = (self._reading, text.version, self._reading.document(path, text.source))
            self._documents[uri] = kept
        return kept[2]

    def marks(self, uri: str, of: Callable[[Document], Iterable[Mark]]) -> list[Mark]:
        """Marks of a document that are on lines it has."""
        document = self.document(uri)
        count = len(self.workspace.get_text_document(uri).lines)
        return [] if document is None else [mark for mark in of(document) if 0 < mark.line <= count]

    async def choose(self, title: str, choices: Sequence[tuple[str, T]], given: Sequence[Any]) -> tuple[T] | None:
        """The choice that an argument names, or that the user makes; None without one."""
        by_name = dict(choices)
        if given:
            if str(given[0]) in by_name:
                return (by_name[str(given[0])],)
            self.say(f"there is no {printable(str(given[0]), 80)!r} to choose; there are: {', '.join(by_name)}")
            return None
        actions = [types.MessageActionItem(name) for name, _ in choices]
        params = types.ShowMessageRequestParams(types.MessageType.Info, title, actions)
        answer = await self.window_show_message_request_async(params)
        return None if answer is None else (by_name[answer.title],)

    async def set(self, **changes: Any) -> None:
        """Changes settings, and shows the result."""
        self._settings = replace(self._settings, **changes)
        await self.update()

    def say(self, text: str) -> None:
        """Shows a message."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, plain(text)))

    def recordings(self) -> list[tuple[str, Path | None]]:
        """The newest recordings of the folder by name, the newest first."""
        found = recordings_here(self.folder)[::-1][:OFFERED]
        return [(plain(printable(path.name, 80)), path) for path in found]


def _is_folder(place: Path) -> bool:
    """True for a folder of recordings, False for a recording."""
    return place.is_dir() and not (place / "manifest.json").exists()


def _read(path: Path, settings: Settings) -> Reading | None:
    with Recording.open(path) as recording:
        if recording.unfinished:
            return None
    return Reading.of(path, Question(settings.scope), sort=settings.sort, base=settings.base)


def _whole_line(text: TextDocument, line: int) -> types.Range:
    """A line without the space before and after its text."""
    source = text.lines[line - 1].rstrip()
    start = text.position_codec.client_num_units(source[: len(source) - len(source.lstrip())])
    end = text.position_codec.client_num_units(source)
    return types.Range(types.Position(line - 1, start), types.Position(line - 1, end))


def make_server(place: Path | None) -> EditorServer:
    """The server; ``start_io`` of it serves the process that started this one."""
    server = EditorServer(place)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        server.start_watch()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.send_remarks(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.send_remarks(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        uri, asked = params.text_document.uri, params.range
        text = server.workspace.get_text_document(uri)
        return [
            types.InlayHint(_whole_line(text, mark.line).end, plain(mark.text), padding_left=True)
            for mark in server.marks(uri, Document.hints)
            if asked.start.line <= mark.line - 1 <= asked.end.line
        ]

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        text = server.workspace.get_text_document(uri)
        return [
            # Without a command's name the lens is a text that does nothing.
            types.CodeLens(_whole_line(text, mark.line), types.Command(plain(mark.text), ""))
            for mark in server.marks(uri, Document.lenses)
        ]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.document(params.text_document.uri)
        text = None if document is None else document.hover(params.position.line + 1)
        return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.PlainText, plain(text)))

    _add_commands(server)
    return server


def _add_commands(server: EditorServer) -> None:
    """The commands. Each takes the name of a choice, or asks the user."""

    @server.command("tachograph.chooseRecording")
    async def recording(*given: str) -> None:
        choices = [("the newest", None), *server.recordings()]
        if (chosen := await server.choose("Show which recording?", choices, given)) is not None:
            await server.set(recording=chosen[0], base=None)

    @server.command("tachograph.chooseMetric")
    async def metric(*given: str) -> None:
        choices: list[tuple[str, Sort | None]] = [("all", None), *((str(each), each) for each in Sort)]
        if (chosen := await server.choose("Show which metric?", choices, given)) is not None:
            await server.set(sort=chosen[0])

    @server.command("tachograph.chooseScope")
    async def scope(*given: str) -> None:
        choices: list[tuple[str, str | None]] = [("default", None), (PROJECT, PROJECT), (ALL, ALL)]
        choices += [(str(each), str(each)) for each in given[:1] if each != "default"]  # Any glob is a scope.
        if (chosen := await server.choose("Charge the lines of which code?", choices, given)) is not None:
            await server.set(scope=chosen[0])

    @server.command("tachograph.compareWith")
    async def compare(*given: str) -> None:
        choices = [("nothing", None), *server.recordings()]
        if (chosen := await server.choose("Compare with which recording?", choices, given)) is not None:
            await server.set(base=chosen[0])

"""A notebook's kernel, driven as a frontend does it: cells with ids go in, their outputs come out."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from integration import support

PATIENCE = 120


@dataclass
class Output:
    """What a cell wrote, showed and raised."""

    text: str = ""
    errors: str = ""
    shown: list[dict[str, str]] = field(default_factory=list)
    result: str | None = None
    raised: str | None = None
    traceback: str = ""

    @property
    def report(self) -> str:
        """The text of the only report."""
        assert len(self.shown) == 1, self
        return self.shown[0]["text/plain"]


class Kernel:
    """A kernel of its own process in ``folder``, whose temporary directory is there as well."""

    def __init__(self, folder: Path) -> None:
        from jupyter_client.manager import KernelManager

        self.folder = folder
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        own = {name: str(folder / "jupyter") for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
        self.manager = KernelManager(connection_file=str(folder / "connection.json"))
        self.manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager.start_kernel(
            cwd=str(folder), env={**os.environ, **own, "TMPDIR": str(self.temporary), "NO_COLOR": "1"}
        )
        self.connect()

    def connect(self) -> None:
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    @property
    def pid(self) -> int:
        return int(self.run("import os; print(os.getpid())").text)

    def run(self, code: str, cell_id: str | None = None, when: Callable[[Output], None] | None = None) -> Output:
        """The output of a cell; ``when`` is called after each thing that it puts out, while it runs."""
        session = self.client.session
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": False}
        message = session.msg("execute_request", content, metadata={} if cell_id is None else {"cellId": cell_id})
        self.client.shell_channel.send(message)
        output = Output()
        while True:
            told = self.client.get_iopub_msg(timeout=PATIENCE)
            if told["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
                return output
            note(output, told["msg_type"], told["content"])
            if when is not None:
                when(output)

    def sessions(self) -> list[str]:
        """What sessions have left in the temporary directory."""
        return sorted(path.name for path in self.temporary.glob("tachograph-session-*"))


def note(output: Output, kind: str, content: dict[str, Any]) -> None:
    if kind == "stream":
        if content["name"] == "stdout":
            output.text += content["text"]
        else:
            output.errors += content["text"]
    elif kind == "display_data":
        output.shown.append(content["data"])
    elif kind == "execute_result":
        output.result = content["data"]["text/plain"]
    elif kind == "error":
        output.raised = content["ename"]
        output.traceback = "\n".join(content["traceback"])


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    folder.mkdir(exist_ok=True)
    started = Kernel(folder)
    try:
        yield started
    finally:
        started.client.stop_channels()
        started.manager.shutdown_kernel(now=True)
        support.discard(started.temporary)


def beside(pid: int) -> list[int]:
    """The processes beside a program that records itself."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"attached.beside" in words and b'"pid": %d,' % pid in words:
                found.append(int(folder.name))
    return found

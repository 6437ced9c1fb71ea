from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer import Recording
from tachograph.analyzer.exports import FORMATS, Metric, Options, prepare
from unit.analyzer.exports import program

PROTO = Path(__file__).parent / "fixtures" / "pprof.proto"

Export = Callable[..., bytes]


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    with Recording.open(program.write(tmp_path / "run.tacho")) as opened:
        yield opened


@pytest.fixture
def export(recording: Recording) -> Export:
    """Exports the recording; keywords are those of ``prepare`` and ``Options``."""

    def export(
        format_name: str, metric: str = "cpu", *, lines: bool = False, native: bool = False, **part: Any
    ) -> bytes:
        out = io.BytesIO()
        extract = prepare(recording, Metric(metric), **part)
        FORMATS[format_name].write(extract, Options(lines=lines, native=native), out)
        return out.getvalue()

    return export


def pprof_module(folder: Path) -> Any:
    """The module that protoc makes of pprof's own profile.proto."""
    from grpc_tools import protoc

    assert protoc.main(["protoc", f"-I{PROTO.parent}", f"--python_out={folder}", str(PROTO)]) == 0
    spec = importlib.util.spec_from_file_location("pprof_pb2", folder / "pprof_pb2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

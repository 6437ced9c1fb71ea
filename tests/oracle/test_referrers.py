"""What keeps memory alive, against a program that knows what refers to it."""

from __future__ import annotations

from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import rows
from oracle.support import marked

pytestmark = pytest.mark.native

HOLDERS = {
    "global": ("__main__.CACHE[...]", "bytearray"),
    "class": ("__main__.Registry.items[...]", "bytes"),
    "instance": ("__main__.application.history[...]", "bytearray"),
    "cached": ("__main__.table > dict[...]", "bytearray"),
    "closure": ("__main__.keep.__closure__[...].cell_contents[...]", "bytearray"),
    "slot": ("__main__.node.payload", "bytearray"),
    "small": ("__main__.PAIRS[...]", "tuple"),
}


@pytest.fixture(scope="module")
def run(recorded: Recorder) -> support.Run:
    return recorded("kept_by.py", options=("--referrers",))


def kept(run: support.Run, name: str) -> list[dict[str, Any]]:
    return [row for row in run.report["memory"]["referrers"] if row["line"] in marked(run.program, name)]


@pytest.mark.parametrize("name", HOLDERS)
def test_what_keeps_a_site_is_named(run: support.Run, name: str) -> None:
    found = kept(run, name)
    assert found, "the line is not among the sites that were looked for"
    assert HOLDERS[name] in {(row["holder"], row["type"]) for row in found}
    assert {row["role"] for row in found} == {"module"}


def test_what_native_code_keeps_is_reached_from_nothing(run: support.Run) -> None:
    found = kept(run, "native")
    assert [row["role"] for row in found] == ["unreached"]
    assert found[0]["holder"] is None
    assert found[0]["blocks"] > 1


def test_no_code_of_the_program_is_run(run: support.Run) -> None:
    assert run.stderr == ""


def test_chains_are_whole(run: support.Run) -> None:
    links: dict[int, list[dict[str, Any]]] = {}
    for row in rows(run.recording, "referrers"):
        links.setdefault(row["chain"], []).append(row)
    assert len(links) > len(HOLDERS)
    for chain in links.values():
        assert [row["link"] for row in chain] == sorted({row["link"] for row in chain})
        assert chain[0]["link"] == 0
        assert len({(row["size_bytes"], row["stack"], row["time_ns"]) for row in chain}) == 1


def test_nothing_is_looked_for_unless_asked(recorded: Recorder) -> None:
    assert recorded("footprint.py").report["memory"]["referrers"] is None


def test_a_snapshot_says_what_kept_it_then(recorded: Recorder) -> None:
    run = recorded("kept_at_snapshot.py", options=("--rotate", "60s", "--keep", "2", "--referrers"))
    assert run.truth["facts"]["asked"]
    assert kept(run, "kept") == []
    (window,) = run.recording.parent.glob("run.0*.tacho")
    found = support.analyze(window, cwd=window.parent)["memory"]["referrers"]
    lines = marked(run.program, "kept")
    assert {row["holder"] for row in found if row["line"] in lines} == {"__main__.CACHE[...]"}

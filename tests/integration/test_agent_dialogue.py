"""An assistant goes from "it is slow" to a measured fix, over five programs, by the real server and its own client.

The transcript is fixed: each answer is within its bound, and has what the next question is made of.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration import support
from tachograph.analyzer.render.markdown.document import tokens

mcp = pytest.importorskip("mcp")
pytest.importorskip("duckdb", reason="the server needs it")
pytestmark = [pytest.mark.recording, pytest.mark.slow]

PROGRAMS = Path(__file__).resolve().parents[2] / "docs" / "case-studies"
BOUND = 1500


@dataclass(frozen=True)
class Case:
    """A program and the option that mends it, the line at fault, and what shows it (a part of the answers)."""

    program: str
    size: str
    mended: str
    fault: str
    part: str
    gain: str


CASES = [
    Case("chained_indexing", "1500", "--hoisted", 'table[station]["temperature"][hour]', "lines", "copied"),
    Case("concat", "100000", "--by-month", "pd.concat(", "memory", "peak"),
    Case("groupby", "300000", "--column", 'list(table.groupby("station"))', "memory", "allocated"),
    Case("decimal_exp", "4000", "--small", "s += num / fact", "lines", "CPU"),
]


def talk(folder: Path, dialogue: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Connect a client to ``tachograph mcp`` over the folder, and have it ask."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(command=sys.executable, args=["-m", "tachograph", "mcp", str(folder)])

    async def connected() -> None:
        async with mcp.Client(stdio_client(command)) as client:
            await dialogue(client)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, asyncio.wait_for(connected(), 120)).result()


async def ask(client: Any, tool: str, **given: Any) -> str:
    """An answer within its bound."""
    answer = await client.call_tool(tool, given)
    text: str = answer.content[0].text
    assert not answer.is_error, text
    assert tokens(text) <= given.get("tokens", 2000)
    return text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_from_slow_to_a_measured_fix(case: Case, tmp_path: Path) -> None:
    for name, more in (("slow", []), ("mended", [case.mended])):
        program = [str(PROGRAMS / f"{case.program}.py"), case.size, *more]
        done = support.tachograph("record", "-q", "-o", f"{name}.tacho", *program, cwd=tmp_path)
        assert done.returncode == 0, done.stderr

    async def dialogue(client: Any) -> None:
        listed = await ask(client, "recordings")
        assert {"slow", "mended"} <= set(re.findall(r"^(\w+): ", listed, re.MULTILINE))
        summary = await ask(client, "summary", recording="slow", tokens=BOUND, memory=case.part == "memory")
        assert case.fault in summary  # the first answer names the line
        part = await ask(client, "part", recording="slow", name=case.part, tokens=BOUND)
        assert case.fault in part
        (number,) = {
            row
            for row, text in enumerate((PROGRAMS / f"{case.program}.py").read_text().splitlines(), 1)
            if case.fault in text
        }
        line = await ask(client, "line", recording="slow", where=f"{case.program}.py:{number}", tokens=BOUND)
        assert case.fault in line
        change = await ask(client, "difference", base=["slow"], new=["mended"], anyway=True, tokens=BOUND)
        assert case.gain in change

    talk(tmp_path, dialogue)


def test_a_program_of_a_library(tmp_path: Path) -> None:
    """What is slow is in a library: the call paths lead there, and a query adds up its files."""
    pytest.importorskip("jsonschema", reason="the program needs it")
    program = [str(PROGRAMS / "json_schema.py"), "60"]
    assert support.tachograph("record", "-q", "-o", "menu.tacho", *program, cwd=tmp_path).returncode == 0

    async def dialogue(client: Any) -> None:
        assert "validator.validate(dish)" in await ask(client, "summary", recording="menu", tokens=BOUND)
        paths = await ask(client, "call_paths", recording="menu", tokens=BOUND)
        assert "validate" in paths
        tables = await ask(client, "tables", recording="menu")
        assert "stacks" in tables
        everything = await ask(client, "part", recording="menu", name="functions", scope="all", tokens=BOUND)
        assert "jsonschema" in everything
        rows = await ask(client, "query", recording="menu", sql="SELECT count(*) AS samples FROM cpu")
        assert re.search(r"\d{2,}", rows)

    talk(tmp_path, dialogue)

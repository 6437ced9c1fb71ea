"""The MCP server, asked by the package's own client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tachograph.analyzer.commands.assistant.mcp_server import Answers
from tachograph.analyzer.commands.shelf import Shelf
from tachograph.cli import main

from .test_answers import check, write

mcp = pytest.importorskip("mcp")
TOOLS = {"recordings", "summary", "part", "line", "call_paths", "difference", "tables", "query"}


def ask(server: Any, question: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """What a client is told that is connected to a server."""

    async def connected() -> Any:
        async with mcp.Client(server) as client:
            return await question(client)

    # In a thread of its own: tests with a browser leave an event loop running in this one.
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, asyncio.wait_for(connected(), 60)).result()


def test_the_tools_read_and_their_answers_are_marked(tmp_path: Path) -> None:
    from tachograph.analyzer.commands.assistant.mcp_server import serve

    write(tmp_path / "a.tacho")

    async def question(client: Any) -> tuple[Any, list[Any], Any]:
        tools = (await client.list_tools()).tools
        arguments: dict[str, dict[str, object]] = {
            "recordings": {},
            "summary": {"recording": "a", "tokens": 1000},
            "part": {"recording": "a", "name": "lines", "sort": "native"},
            "line": {"recording": "a", "where": "program.py:1"},
            "call_paths": {"recording": "a"},
            "difference": {"base": ["a"], "new": "a"},
            "tables": {"recording": "a"},
            "query": {"recording": "a", "sql": "SELECT * FROM threads"},
        }
        answers = [await client.call_tool(name, given) for name, given in arguments.items()]
        return tools, answers, await client.call_tool("summary", {"recording": "../a"})

    tools, answers, refused = ask(serve(Answers(Shelf([tmp_path]))), question)
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations.read_only_hint and not tool.annotations.open_world_hint for tool in tools)
    assert [answer.is_error for answer in answers] == [False] * len(TOOLS)
    for answer in answers:
        check(answer.content[0].text, 20_000)
    assert refused.is_error
    assert "```text\nthere is no recording '../a'; there are: a\n```" in refused.content[0].text


@pytest.mark.recording
def test_the_command_serves_on_standard_input_and_output(tmp_path: Path) -> None:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    write(tmp_path / "a.tacho")
    command = StdioServerParameters(command=sys.executable, args=["-m", "tachograph", "mcp", str(tmp_path)])

    async def question(client: Any) -> Any:
        return await client.call_tool("recordings", {})

    assert "\na: program.py, " in ask(stdio_client(command), question).content[0].text


def test_what_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(main, ["mcp", str(tmp_path / "nothing")])
    assert done.exit_code == 2
    assert "there is no recording or folder" in done.output
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = CliRunner().invoke(main, ["mcp", str(tmp_path)])
    assert done.exit_code == 2
    assert done.output == "tachograph: 'tachograph mcp' needs duckdb: pip install 'tachograph[mcp]'\n"

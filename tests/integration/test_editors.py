"""The real clients of the language server: Neovim with the file from editors/, and VS Code's with the extension.

Each is skipped where there is no such editor: ``nvim`` (0.10 or later), or ``code-server`` with ``npm``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from browser import chromium
from integration import support

pytestmark = [pytest.mark.recording]

EDITORS = Path(__file__).resolve().parents[2] / "editors"
PROGRAM = """\
import json


def encode(rows):
    out = []
    for row in rows:
        out.append(json.dumps(row))
    return out


print(len(encode([list(range(200))] * 20_000)))
"""
HOT = 7

SESSION = """
vim.opt.runtimepath:prepend(vim.env.CLIENT)
require("tachograph").setup({ cmd = vim.json.decode(vim.env.SERVER) })
vim.cmd("edit busy.py")
vim.bo.filetype = "python"
local function hints()
  return vim.tbl_map(function(each)
    return { each.inlay_hint.position.line + 1, each.inlay_hint.label }
  end, vim.lsp.inlay_hint.get({ bufnr = 0 }))
end
local function lenses()
  local get = vim.lsp.codelens.get
  return vim.lsp.codelens.enable and get({ bufnr = 0 }) or get(0)
end
local function first() return (hints()[1] or { 0, "" })[2] end
vim.wait(30000, function() return #hints() > 0 and #lenses() > 0 end, 50)
local seen = { hints = hints(), lenses = vim.tbl_map(function(each)
  each = each.lens or each
  return { each.range.start.line + 1, each.command.title }
end, lenses()) }
vim.cmd("TachographMetric cpu")
vim.wait(30000, function() return first():find(" cpu$") ~= nil end, 50)
seen.metric = first()
vim.fn.writefile({ vim.json.encode(seen) }, "seen.json")
vim.cmd("qa!")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a program and its recording."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    (folder / "busy.py").write_text(PROGRAM, encoding="utf-8")
    done = support.tachograph("record", "-q", "-o", "busy.tacho", "busy.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_neovim(project: Path, tmp_path: Path) -> None:
    nvim = shutil.which("nvim")
    if nvim is None:
        pytest.skip("Neovim is not installed")
    client = tmp_path / "client"
    (client / "lua").mkdir(parents=True)
    shutil.copy(EDITORS / "neovim" / "tachograph.lua", client / "lua")
    (tmp_path / "session.lua").write_text(SESSION, encoding="utf-8")
    environment = {"CLIENT": str(client), "SERVER": json.dumps([sys.executable, "-m", "tachograph", "lsp"])}
    done = subprocess.run(
        [nvim, "--headless", "-u", "NONE", "-c", f"luafile {tmp_path / 'session.lua'}"],
        cwd=project,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    seen = json.loads((project / "seen.json").read_text())
    assert HOT in [line for line, text in seen["hints"] if "% CPU, native" in text]
    assert [line for line, text in seen["lenses"] if "% CPU with its calls" in text] == [4]
    assert re.fullmatch(r"[\d.]+ m?s cpu", seen["metric"])


@pytest.mark.slow
def test_vs_code(project: Path, tmp_path: Path) -> None:
    """The extension is built as the docs say, and shows its figures in a real editor in a real browser."""
    sync_api = pytest.importorskip("playwright.sync_api")
    server, npm, browser = shutil.which("code-server"), shutil.which("npm"), chromium.find()
    if server is None or npm is None or browser is None:
        pytest.skip("code-server, npm or a browser is not installed")
    source = tmp_path / "extension"
    shutil.copytree(EDITORS / "vscode", source, ignore=shutil.ignore_patterns("node_modules", "out", "*.vsix"))
    for command in ([npm, "install"], ["npx", "vsce", "package", "-o", "tachograph.vsix"]):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr
    folders = ["--extensions-dir", str(tmp_path / "extensions"), "--user-data-dir", str(tmp_path / "data")]
    installed = [server, *folders, "--install-extension", str(source / "tachograph.vsix")]
    subprocess.run(installed, check=True, capture_output=True, timeout=120)
    settings = {
        "tachograph.command": [sys.executable, "-m", "tachograph", "lsp"],
        "security.workspace.trust.enabled": False,
        "workbench.startupEditor": "none",
    }
    (tmp_path / "data" / "User").mkdir(parents=True, exist_ok=True)
    (tmp_path / "data" / "User" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [server, *folders, "--auth", "none", "--disable-telemetry", "--disable-update-check"]
    with subprocess.Popen([*started, "--bind-addr", f"127.0.0.1:{port}", str(project)], env=os.environ) as editor:
        try:
            support.wait_for(lambda: answers(port), "the editor", timeout=120)
            with sync_api.sync_playwright() as driver:
                page = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
                    viewport={"width": 1280, "height": 720}
                )
                page.goto(f"http://127.0.0.1:{port}/?folder={project}")
                explorer = page.locator(".explorer-folders-view .monaco-list-row")
                explorer.filter(has_text="busy.py").dblclick(timeout=120_000)
                page.get_by_text("% CPU, native").first.wait_for(timeout=120_000)
                page.get_by_text("% CPU with its calls").first.wait_for(timeout=60_000)
                if place := os.environ.get("TACHOGRAPH_SCREENSHOTS"):
                    page.screenshot(path=Path(place) / "vscode.png")
                choose(page, "tachograph: Choose Metric", "Show which metric?", "cpu")
                page.get_by_text(re.compile(r"[\d.]+\sm?s\scpu")).first.wait_for(timeout=60_000)
        finally:
            editor.terminate()


def choose(page: Any, command: str, question: str, answer: str) -> None:
    """Run a command of the palette, and answer its question."""
    box = page.locator(".quick-input-widget input[type=text]")
    page.keyboard.press("F1")
    box.wait_for()
    box.fill(f">{command}")
    page.locator(".quick-input-list .monaco-list-row", has_text=command).first.click()
    page.get_by_placeholder(question).wait_for()
    page.locator(".quick-input-list").get_by_text(answer, exact=True).click()


def answers(port: int) -> bool:
    """True if something listens at the port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0

"""The report in a real JupyterLab: in its frame, light and dark, and what a restart leaves."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import chromium
from browser.conftest import FLAGS
from integration import support

pytest.importorskip("jupyterlab", reason="jupyterlab is not installed: pip install jupyterlab")

pytestmark = [pytest.mark.slow, pytest.mark.native, pytest.mark.recording]

CELLS = (
    "%load_ext tachograph",
    "def squares(count):\n    return [number * number % 7 for number in range(count)]",
    "%%tachograph\nkept = squares(3_000_000)\ntable = bytearray(80_000_000)\nprint(len(kept))",
)
PATIENCE = 180_000


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[str]:
    """The address of a notebook with CELLS in a JupyterLab of its own."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "outputs": [], "execution_count": None,
         "source": source}
        for number, source in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": cells}
    (tmp_path / "squares.ipynb").write_text(json.dumps(notebook))
    settings = tmp_path / "config" / "labconfig"
    settings.mkdir(parents=True)
    disabled = {"@jupyterlab/apputils-extension:announcements": True}  # it asks the network
    (settings / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
    (tmp_path / "temporary").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: str(tmp_path / name.lower()) for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    own |= {"JUPYTER_CONFIG_DIR": str(tmp_path / "config"), "TMPDIR": str(tmp_path / "temporary")}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
             "--ServerApp.port_retries=0", "--IdentityProvider.token="],
            cwd=tmp_path, env={**os.environ, **own}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        support.wait_for(lambda: _listens(port), "JupyterLab", timeout=120)
        yield f"http://127.0.0.1:{port}/lab/tree/squares.ipynb"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:  # it waits for a kernel that it restarts
            server.kill()
            server.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_report_is_below_the_cell_in_the_theme_of_the_notebook(
    laboratory: str, playwright: Any, tmp_path: Path
) -> None:
    executable = chromium.find()
    if executable is None:
        (pytest.fail if chromium.needed() else pytest.skip)(chromium.MISSING)
    browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
    try:
        page = browser.new_page(viewport={"width": 1300, "height": 1120})
        page.set_default_timeout(PATIENCE)
        page.goto(laboratory)
        page.locator(".jp-CodeCell").nth(2).wait_for()
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
        for number in range(len(CELLS)):
            page.locator(".jp-CodeCell .cm-content").nth(number).click()
            page.keyboard.press("Shift+Enter")
        frame = page.locator(".jp-OutputArea iframe").element_handle()
        report = frame.content_frame()
        report.wait_for_selector("html[data-ready='yes']", state="attached")
        assert report.locator("h1").inner_text() == "In [3]"
        assert report.locator("#lines").get_by_text("In [2]:2").count() >= 1
        assert report.locator("#lines").get_by_text("table = bytearray").count() >= 1
        # The sandbox keeps it apart.
        assert report.evaluate("() => { try { return parent.document.title; } catch (error) { return error.name; } }") \
            == "SecurityError"  # fmt: skip
        dark = "() => matchMedia('(prefers-color-scheme: dark)').matches"
        assert not page.evaluate(dark)  # the browser itself is light all the time
        report.wait_for_selector("html[data-theme='light']", state="attached")
        page.screenshot(path=tmp_path / "light.png")
        page.get_by_role("menuitem", name="Settings").click()
        page.get_by_text("Theme", exact=True).first.hover()
        page.get_by_text("JupyterLab Dark", exact=True).click()
        report.wait_for_selector("html[data-theme='dark']", state="attached")
        page.screenshot(path=tmp_path / "dark.png")
        assert [path.name for path in (tmp_path / "temporary").glob("tachograph-session-*")] != []
        page.get_by_role("menuitem", name="Kernel", exact=True).click()
        page.get_by_text("Restart Kernel…", exact=True).click()
        page.get_by_role("button", name="Confirm Kernel Restart").click()
        support.wait_for(
            lambda: not list((tmp_path / "temporary").glob("tachograph-session-*")), "the restart", timeout=60
        )
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    finally:
        browser.close()

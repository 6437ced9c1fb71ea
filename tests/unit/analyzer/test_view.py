"""``tachograph view``: one page, or a server of pages that tells nothing to others."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tachograph.analyzer.commands import view as view_command
from tachograph.analyzer.commands.page_server import PageServer
from tachograph.analyzer.commands.pages import Pages
from tachograph.analyzer.commands.shelf import Shelf
from tachograph.analyzer.profile.question import Question
from tachograph.cli import main
from unit.analyzer.recordings import MS, START, Builder

SOURCE = "def work():\n    return sum(range(10**6))\n\n\nwork()\n"
ODD = "od d#?&%2F~"


def write(path: Path, count: int = 50, program: str = "shop.py", **labels: str) -> Path:
    builder = Builder(path, labels=labels, argv=(program,), created_utc="2026-11-20T10:00:00Z")
    file = builder.file("/srv/app/shop.py", SOURCE)
    stack = builder.stack((builder.code(file, "<module>"), 5), (builder.code(file, "work"), 2))
    for number in range(count):
        builder.cpu(stack, time_ns=START + (number + 1) * 10 * MS)
    path.parent.mkdir(parents=True, exist_ok=True)
    return builder.write()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    write(folder / "a.tacho", version="1")
    write(folder / "b.tacho", 100, version="2")
    write(folder / "day" / f"{ODD}.tacho", 20, "other.py")
    (folder / "broken.tacho").mkdir()
    (folder / "broken.tacho" / "manifest.json").write_text("{")
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[PageServer]:
    pages = Pages(Shelf([folder]), Question())
    with PageServer(pages, 0) as server:
        pages.begin()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        pages.end()
        thread.join()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def status(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status and text of a request that is sent as it stands."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    assert not any(name.lower().startswith("access-control") for name in answer.headers)
    connection.close()
    return answer.status, text


def test_index_reports_and_totals(server: PageServer) -> None:
    index = get(server.url)
    assert "<title>Recordings · tachograph</title>" in index
    for _ in range(100):
        totals = get(f"{server.url}totals")
        if totals.count('"cpu"') == 4:
            break
        time.sleep(0.05)
    assert '"a": {"wall": 10.0, "cpu": 0.5' in totals
    assert '"b": {"wall": 10.0, "cpu": 1.0' in totals
    assert '"broken": {"wall": null, "cpu": null' in totals
    assert "<title>shop.py · tachograph</title>" in get(f"{server.url}report/a")
    assert "<title>other.py · tachograph</title>" in get(f"{server.url}report/day%2Fod%20d%23%3F%26%252F~")
    assert "a.tacho → b.tacho" in get(f"{server.url}diff/a/b")


def test_what_cannot_be_compared_says_why_and_the_way_out(server: PageServer) -> None:
    path = f"/{server.token}/diff/a/day%2Fod%20d%23%3F%26%252F~"
    code, text = status(server, path)
    assert code == 409
    assert "other.py" in text
    assert 'href="?anyway=1"' in text
    assert status(server, f"{path}?anyway=1")[0] == 200
    code, text = status(server, f"/{server.token}/report/broken")
    assert code == 409
    assert "Traceback" not in text


def test_nothing_without_the_secret_and_nothing_but_pages(server: PageServer, folder: Path) -> None:
    token = server.token
    assert status(server, f"/{token}/")[0] == 200
    refused = {
        path: status(server, path)[0]
        for path in (
            "/",
            f"/{token}",
            f"/{token[:-1]}/",
            f"/{token}x/report/a",
            "/report/a",
            "/%FF/",
            f"/once/{token}",
            f"/{token}/secret.txt",
            f"/{token}/../secret.txt",
            f"/{token}/report/../secret.txt",
            f"/{token}/report/..%2Fsecret.txt",
            f"/{token}/report/{folder / 'a.tacho'}",
            f"/{token}/report/nothing",
            f"/{token}/diff/a/nothing",
            f"/{token}/diff/a",
        )
    }
    assert set(refused.values()) == {404}, refused


def test_other_hosts_and_methods_are_refused(server: PageServer) -> None:
    path, port = f"/{server.token}/", server.server_port
    assert status(server, path, Host=f"localhost:{port}")[0] == 200
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        assert status(server, path, Host=host)[0] == 421, host
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"):
        assert status(server, path, method)[0] == 405
    assert status(server, path, Content_Length="5")[0] == 400


def test_the_address_for_the_browser_works_once(server: PageServer) -> None:
    url = server.one_time_url()
    assert "<title>Recordings" in get(url)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(url)


def test_it_listens_on_this_machine_alone(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def run(*arguments: object, **environment: str) -> Any:
    return CliRunner(
        env={"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": "", "WSL_DISTRO_NAME": "", **environment}
    ).invoke(main, ["view", *map(str, arguments)], prog_name="tachograph")


def test_one_recording_is_a_page_that_is_opened(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "tachograph", "view", folder / "a.tacho"],
        env={**os.environ, "BROWSER": str(browser)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("a.html\n", "")
    assert "<title>shop.py · tachograph</title>" in (tmp_path / "a.html").read_text("utf-8")
    assert opened.read_text() == f"{(tmp_path / 'a.html').as_uri()}\n"


def test_a_page_replaces_a_page_and_nothing_else(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        done = run(folder / "a.tacho")
        assert (done.exit_code, done.stdout) == (0, "a.html\n")
        address = (tmp_path / "a.html").as_uri()
        assert done.stderr == f"No browser can be opened here: give one this address: {address}\n"
    (tmp_path / "a.html").write_text("<title>mine</title>")
    done = run(folder / "a.tacho")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "tachograph: a.html is no page of tachograph: name another file with --output\n"
    assert run(folder / "a.tacho", "-o", "other.html", "--no-browser").output == "other.html\n"
    assert (tmp_path / "a.html").read_text() == "<title>mine</title>"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nothing",), "nothing does not exist"),
        (("a.tacho", "nothing"), "there is no recording or folder"),
        (("a.tacho", "b.tacho", "-o", "x.html"), "--output is the page of one recording"),
        (("a.tacho", "--port", "8000"), "--port is for several recordings"),
        (("empty",), "there is no recording in this folder"),
        (("broken.tacho",), "broken.tacho"),
    ],
)
def test_bad_input(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], line: str) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir(exist_ok=True)
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("tachograph: ")
    assert done.stderr.count("\n") == 1
    assert line in done.stderr


def test_ctrl_c_ends_it(folder: Path) -> None:
    command = [sys.executable, "-m", "tachograph", "view", "--no-browser", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        port = int(url.split(":")[2].partition("/")[0])
        assert "Recordings" in get(url)
        taken = run(str(folder), "--port", port)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == "4 recordings; Ctrl-C ends this.\n\n"
    assert (taken.exit_code, taken.stderr) == (
        2,
        f"tachograph: cannot serve on port {port}: Address already in use\n",
    )


def test_browsers_that_run_in_the_terminal_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    assert not view_command.has_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert view_command.has_browser()

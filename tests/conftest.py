"""What every test begins with: the signals of the keyboard and of a terminal that closes, as a shell has them."""

import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from browser import chromium


def pytest_configure() -> None:
    """In the background of a shell they are ignored, which every program under test would inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end that the page was looked at by no browser: a skip is easily overlooked."""
    skipped = [each for each in terminalreporter.stats.get("skipped", []) if chromium.MISSING in str(each.longrepr)]
    if skipped:
        terminalreporter.section("the HTML report was not tested", red=True)
        terminalreporter.line(f"{len(skipped)} tests were skipped: {chromium.MISSING}", red=True)


def _open_to_every_user(folder: Path) -> Path:
    for each in (folder, *folder.parents):
        if each.is_relative_to(tempfile.gettempdir()) and each != Path(tempfile.gettempdir()):
            each.chmod(each.stat().st_mode | 0o711)
    return folder


@pytest.fixture(scope="session")
def open_to_every_user() -> Callable[[Path], Path]:
    """Lets other users enter a folder of a test, which pytest makes for one alone; the folder.

    Root's recordings have the text of files there also where the process that named them was over at once.
    """
    return _open_to_every_user


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """The test's own folder, which other users may enter."""
    return _open_to_every_user(tmp_path)

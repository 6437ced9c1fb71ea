"""What every test begins with: the signals of the keyboard and of a terminal that closes, as a shell has them."""

import gc
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def _folder_for_all() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tachograph-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter. Those of pytest are for one alone, and each run of pytest sees to that.

    Root's recordings have the text of files there also where the process that named them was over at once.
    """
    with _folder_for_all() as folder:
        yield folder


@pytest.fixture(scope="module")
def open_folder_of_module() -> Iterator[Path]:
    """The same, for all tests of a file."""
    with _folder_for_all() as folder:
        yield folder


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: the garbage collector need not go through it each time."""
    gc.collect()
    gc.freeze()

"""The pytest plugin: ``pytest --tachograph`` (docs/how-to/record-a-test-run.md).

pytest imports this module in every run where tachograph is installed, of any version of pytest: it imports next to
nothing, and without its option it does nothing.
"""

from __future__ import annotations

import resource
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from tachograph.testing.marks import MARKS, read_mark

ID_PROPERTY = "tachograph.test"
"""The property of a test in a JUnit file that has its id in the recording."""

if TYPE_CHECKING:
    from tachograph.recorder import Span

    Wrapper = Generator[None, Any, None]

OPTION = "tachograph"
MAX_TEST = 180
"""Characters of a test's id in the recording, whose fields are bounded; of a longer one the rest is a hash."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("tachograph", "recording the tests")
    group.addoption(
        "--tachograph",
        nargs="?",
        const="",
        default=None,
        metavar="PATH",
        help="Record the tests into PATH (pytest-001.tacho and so on here), a span for each, and show the slowest and"
        " the hungriest.",
    )
    group.addoption(
        "--tachograph-options",
        default="",
        metavar="OPTIONS",
        help="Options of 'tachograph record', in one text: --tachograph-options='--force --interval 5'.",
    )
    group.addoption(
        "--tachograph-compare",
        action="append",
        default=[],
        metavar="BASE",
        help="With --tachograph: fail if a test needs more CPU time or memory, for certain, than in BASE: a recording"
        " of a test run, or a folder of them. May be repeated.",
    )
    group.addoption(
        "--tachograph-anyway",
        action="store_true",
        help="With --tachograph-compare: also compare what was recorded in another environment.",
    )
    group.addoption(
        "--tachograph-markdown",
        default="",
        metavar="FILE",
        help="With --tachograph: write what the tests cost as Markdown, for a pull request.",
    )
    group.addoption(
        "--tachograph-top", type=int, default=5, metavar="N", help="How many tests are shown of each kind. (default: 5)"
    )


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Wrapper:
    """Start pytest again, recorded; before it has imported anything of the project, and captured any output."""
    if early_config.known_args_namespace.tachograph is not None:
        from tachograph.testing.rerun import record_again

        record_again(early_config)
    yield


def pytest_configure(config: pytest.Config) -> None:
    """The marks are known in every run, the spans written in recorded ones."""
    for name, mark in MARKS.items():
        config.addinivalue_line("markers", f"{name}({mark.argument}): with --tachograph: {mark.help}")
    if config.getoption(OPTION, None) is not None:
        config.pluginmanager.register(PhaseSpans(), "tachograph-phases")
        config.pluginmanager.register(CheckedMarks(), "tachograph-marks")


class CheckedMarks:
    """Fails a test with a mark that is written wrongly, before it has run.

    This is no wrapper: pytest's own wrappers undo at the teardown what they have begun by then.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Reads the marks."""
        limits_of(item)


class PhaseSpans:
    """Writes a span for each phase of each test: setup, call and teardown."""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Wrapper:
        """The span of the setup."""
        item.user_properties.append((ID_PROPERTY, id_of(item)))
        with Phase("setup", item):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Wrapper:
        """The span of the test function itself, with its limits."""
        with Phase("call", item, **limits_of(item)):
            yield

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Wrapper:
        """The span of the teardown."""
        with Phase("teardown", item):
            yield


class Phase:
    """A phase of a test: its span, and the CPU time of the process by its own clock."""

    def __init__(self, name: str, item: pytest.Item, **limits: float) -> None:
        from tachograph.recorder import span

        self._span: Span = span(name, test=id_of(item), **limits)

    def __enter__(self) -> None:
        self._span.__enter__()
        self._before_ns = cpu_ns()

    def __exit__(self, *error: Any) -> None:
        self._span.tell(cpu_ns=cpu_ns() - self._before_ns)
        self._span.__exit__(*error)


def cpu_ns() -> int:
    """CPU time of this process, and of its children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(sum(each.ru_utime + each.ru_stime for each in used) * 1e9)


def id_of(item: pytest.Item) -> str:
    """A test's id, short enough for a field of a span; one that pytest gives no file has that of its package."""
    test = item.nodeid
    if test.startswith("::"):  # an installed package, far from where the tests run
        test = item.path.as_posix().rpartition("/site-packages/")[2] + test
    if len(test) <= MAX_TEST:
        return test
    from hashlib import sha256

    return f"{test[: MAX_TEST - 9]}#{sha256(test.encode('utf-8', 'replace')).hexdigest()[:8]}"


def limits_of(item: pytest.Item) -> dict[str, float]:
    """The limits in the marks of a test, by field. An invalid mark fails the test, in one line."""
    limits = {}
    for name, mark in MARKS.items():
        marker = item.get_closest_marker(name)
        if marker is not None:
            wrong = None
            try:
                limits[mark.field] = read_mark(name, marker.args, marker.kwargs)
            except ValueError as error:
                wrong = f"mark {name}: {error}"
            if wrong is not None:  # outside of the handler: pytest would show both errors
                pytest.fail(wrong, pytrace=False)
    return limits

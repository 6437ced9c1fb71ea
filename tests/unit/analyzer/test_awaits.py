"""Time that suspended tasks await, from censuses: integrated over time, by line, by function and by task."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import pytest
from click.testing import CliRunner

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.commands.analyze import analyze
from tachograph.format import FormatError
from unit.analyzer.recordings import Builder, table

COROUTINE = 0x83


class Service:
    """A program of two coroutines: `main` awaits tasks of `fetch`, which await a function of a library."""

    def __init__(self, path: Path) -> None:
        self.builder = Builder(path)
        app = self.builder.file("/srv/app.py")
        self.main_code = self.builder.code(app, "main", 10, flags=COROUTINE)
        self.fetch_code = self.builder.code(app, "fetch", 20, flags=COROUTINE)
        library = self.builder.file("/usr/lib/python3.13/asyncio/tasks.py")
        self.sleep_code = self.builder.code(library, "sleep", 30, flags=COROUTINE)
        self.main = self.builder.stack((self.main_code, 1))
        self.fetch = self.builder.stack((self.fetch_code, 2), (self.sleep_code, 3))

    @cached_property
    def path(self) -> Path:
        return self.builder.write()

    def profile(self, **question: object) -> Profile:
        with Recording.open(self.path) as recording:
            return build_profile(recording, Question(**question))  # type: ignore[arg-type]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path / "service.tacho")


def lines(profile: Profile) -> dict[int, tuple[float, float, float]]:
    rows = table(profile.lines.query("line.notna()"), "line", "await_s", "awaiting_mean", "awaiting_peak")
    return {int(line): tuple(round(each, 6) for each in rest) for line, *rest in rows}


def test_a_census_stands_for_the_time_around_it(service: Service) -> None:
    builder = service.builder
    builder.awaits(900, 1000, service.main, 1)
    builder.awaits(900, 1000, service.fetch, 6, awaiter=service.main)
    builder.awaits(1000, 1400, service.fetch, 2, awaiter=service.main)
    builder.awaits(1400, 1500, None, 0)
    profile = service.profile()
    # Line 11: half of 900..1000 and of 1000..1400; line 22: six times that, and two times half of 1000..1500.
    assert lines(profile) == {11: (0.25, 0.025, 1), 22: (6 * 0.25 + 2 * 0.25, 0.2, 6)}
    assert profile.totals.await_s == pytest.approx(2.25)
    functions = table(profile.functions.query("await_s > 0"), "function", "await_s", "total_await_s")
    assert sorted(functions) == [("fetch", 2.0, 2.0), ("main", 0.25, 0.25)]
    tasks = table(profile.tasks.query("kind == 'task'"), "function", "await_s", "awaited_by")
    assert tasks == [("fetch", 2.0, "main"), ("main", 0.25, None)]


def test_a_gap_belongs_to_no_census(service: Service) -> None:
    """The one before a pause, or before the last that found none, is not followed by the next row."""
    service.builder.awaits(0, 100, service.main, 1)
    service.builder.awaits(5000, 5000, service.main, 1)
    service.builder.awaits(5000, 5200, service.main, 1)
    assert lines(service.profile())[11][0] == pytest.approx(0.05 + 0.1 + 0.1)


def test_tasks_that_were_not_looked_at_count_by_their_chance(service: Service) -> None:
    for step in range(10):
        service.builder.awaits(100 * step, 100 * (step + 1), service.fetch, 4, chance=0.01)
    service.builder.awaits(100, 200, service.main, 1, chance=0.01)
    found = lines(service.profile())
    assert found[22] == pytest.approx((400 * 0.95, 38, 400))
    # One of a hundred was met once: that there were a hundred then is not known.
    assert found[11] == pytest.approx((100 * 0.1, 1, 10))


def test_processes_and_windows(service: Service) -> None:
    child, _ = service.builder.process(200, 0, 9000)
    for step in range(4):
        service.builder.awaits(1000 * step, 1000 * (step + 1), service.main, 1)
        service.builder.awaits(1000 * step, 1000 * (step + 1), service.fetch, 1, process=child)
    assert lines(service.profile(processes=("200",))) == {22: pytest.approx((3.5, 3.5 / 9, 1), rel=1e-5)}
    assert lines(service.profile(start_s=1.5, end_s=3.5))[11] == pytest.approx((2, 1, 1))


def test_unknown_is_not_zero(service: Service) -> None:
    service.builder.cpu(service.builder.stack((service.main_code, 0)))
    assert service.profile().totals.await_s is None
    assert service.profile().lines["await_s"].isna().all()


def test_of_one_thread_nothing_is_known(service: Service) -> None:
    service.builder.awaits(0, 100, service.main, 1)
    assert service.profile(thread="main").totals.await_s is None


@pytest.mark.parametrize("chance", [0.0, -1.0, 1.5, float("nan")])
def test_no_such_chance(service: Service, chance: float) -> None:
    service.builder.awaits(0, 100, service.main, 1, chance=chance)
    with pytest.raises(FormatError, match="chance"):
        service.profile()


def test_the_report_shows_lines_that_only_await(service: Service) -> None:
    service.builder.cpu(service.builder.stack((service.main_code, 0)))
    service.builder.awaits(0, 2000, service.fetch, 3)
    path = str(service.path)
    shown = CliRunner().invoke(analyze, [path], env={"COLUMNS": "100"}).output
    assert "await" in shown
    assert [line.split()[:2] for line in shown.splitlines() if "3.00s" in line] == [["22", "3.00s"]]
    tasks = CliRunner().invoke(analyze, [path, "--tasks"], env={"COLUMNS": "120"}).output
    assert any("3.00s" in line and "fetch" in line for line in tasks.splitlines())

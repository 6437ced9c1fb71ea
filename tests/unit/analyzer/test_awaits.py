"""Time that suspended tasks await, from censuses: integrated over time, by line, by function and by task."""

from __future__ import annotations

import json
import math
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.conclusions.awaits import Awaits
from tachograph.analyzer.profile.awaiters import Awaiting
from tachograph.analyzer.render.html.report_page import report
from tachograph.analyzer.report_data.report_data import build_report_data
from tachograph.format import FormatError
from unit.analyzer.recordings import Builder, table
from unit.report import block

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


def test_an_estimate_has_its_interval(service: Service) -> None:
    """A task that always stands there is known but for the first moment and the last."""
    for number in range(100):
        service.builder.awaits(number * 20, number * 20 + 20, service.main, 1)
        service.builder.awaits(number * 20, number * 20 + 20, service.fetch, 4 if number % 2 else 2)
    names = ("line", "await_s", "await_low_s", "await_high_s")
    rows = table(service.profile().lines.query("line.notna()"), *names)
    half = {int(line): (seconds - low, high - seconds) for line, seconds, low, high in rows}
    assert half[11] == pytest.approx([1.96 * math.sqrt((0.02**2 + 0.01**2) / 2)] * 2, rel=1e-3)
    assert half[22] == pytest.approx([1.96 * 0.02 * math.sqrt(2 * 100)] * 2, rel=0.05)


def test_the_interval_is_as_wide_as_estimates_spread() -> None:
    """By runs of a program whose tasks come and go, of which each census looks at a part."""
    rng, censuses, runs = np.random.default_rng(7), 500, 200
    found, deviations = [], []
    for _ in range(runs):
        looked_at = rng.binomial(rng.binomial(20, 0.4, censuses), 0.5)
        at = np.flatnonzero(looked_at)
        tasks, zeros = looked_at[at] / 0.5, np.zeros(len(at), np.int64)
        awaits = Awaits(
            at, zeros, zeros - 1, tasks, looked_at[at].astype(float), tasks * 1e7, at * 10**7, zeros - 1, *(zeros,) * 3
        )
        found.append(awaits.await_ns.sum())
        deviations.append(awaits.deviation(zeros[:1], 1)[0])
    assert np.mean(deviations) == pytest.approx(np.std(found), rel=0.2)


@pytest.mark.parametrize(("suspended", "away"), [(0.02, 6e-5), (0.02, 5e-4), (0.02, 0.02), (0.001, 0.1)])
def test_the_interval_holds_however_rarely_a_task_is_away_or_there(suspended: float, away: float) -> None:
    """In 95 % of the runs of a task that is suspended and goes on by turns, looked at some hundred times a second."""
    rng, runs, length, gap = np.random.default_rng(7), 300, 2.5, 0.01
    held = met = 0
    for _ in range(runs):
        moments = np.cumsum(rng.uniform(0.2, 1.8, 280) * gap) - 3 * gap
        moments = moments[moments < length + 3 * gap]
        turns = np.stack(
            [rng.exponential(each, int(2 * length / (suspended + away)) + 20) for each in (suspended, away)]
        )
        edges = np.concatenate(([0.0], np.cumsum(turns.T.ravel())))
        there = (np.searchsorted(edges, moments, "right") % 2 == 1) & (moments < length)
        truth = float(np.clip(np.minimum(edges[1::2], length) - np.minimum(edges[:-1:2], length), 0, None).sum())
        half = np.diff(moments, prepend=moments[0]) / 2
        stands_for = half + np.append(half[1:], 0)
        at = np.flatnonzero(there)
        zeros, ones = np.zeros(len(at), np.int64), np.ones(len(at))
        awaits = Awaits(at, zeros, zeros - 1, ones, ones, stands_for[at], at, zeros - 1, *(zeros,) * 3)
        met += len(at) > 0  # else the line has no row
        held += (
            len(at) > 0 and abs(awaits.await_ns.sum() - truth) <= 1.96 * awaits.deviation(np.zeros(1, np.int64), 1)[0]
        )
    assert held >= 0.95 * met - 3 * math.sqrt(0.05 * 0.95 * met)


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


def shape(branches: list[Awaiting], depth: int = 0) -> list[tuple[int, str, int | None, str | None, float]]:
    rows = [row for root in branches for row in root.walk(depth)]
    return [(at, each.function, each.line, each.calls, round(each.await_s, 6)) for at, each in rows]


def test_tasks_stand_below_those_that_await_them(service: Service) -> None:
    builder = service.builder
    builder.awaits(0, 1000, service.main, 1)
    builder.awaits(0, 1000, service.fetch, 6, awaiter=service.main)
    direct = builder.stack((service.fetch_code, 4))
    builder.awaits(0, 1000, direct, 2, awaiter=service.main)
    builder.awaits(0, 1000, direct, 3)
    found = service.profile().awaiting
    assert found is not None
    assert shape(found) == [
        (0, "fetch", 24, None, 1.5),
        (0, "main", 11, None, 0.5),
        (1, "fetch", 22, "sleep", 3.0),
        (1, "fetch", 24, None, 1.0),
    ]
    assert [(each.tasks_mean, each.tasks_peak) for each in found[1].children] == [(0.3, 6), (0.1, 2)]


def test_what_two_await_is_divided_by_their_time(service: Service) -> None:
    """Tasks at one place are awaited by `main` and by none: so is what they await themselves, one to three."""
    builder = service.builder
    work = builder.stack((builder.code(0, "work", 40, flags=COROUTINE), 5))
    builder.awaits(0, 1000, service.main, 1)
    builder.awaits(0, 1000, service.fetch, 3, awaiter=service.main)
    builder.awaits(0, 1000, service.fetch, 1)
    builder.awaits(0, 1000, work, 8, awaiter=service.fetch)
    found = service.profile().awaiting
    assert found is not None
    assert shape(found) == [
        (0, "main", 11, None, 0.5),
        (1, "fetch", 22, "sleep", 1.5),
        (2, "work", 45, None, 3.0),
        (0, "fetch", 22, "sleep", 0.5),
        (1, "work", 45, None, 1.0),
    ]


def test_awaiters_in_a_circle_lose_no_time(service: Service) -> None:
    """Different tasks of two places await one another: recursion. All time is in the tree once."""
    builder = service.builder
    builder.awaits(0, 1000, service.fetch, 2, awaiter=service.main)
    builder.awaits(0, 1000, service.main, 4, awaiter=service.fetch)
    builder.awaits(0, 1000, service.fetch, 1, awaiter=service.fetch)
    profile = service.profile()
    assert profile.awaiting is not None
    assert sum(row[-1] for row in shape(profile.awaiting)) == pytest.approx(profile.totals.await_s) == 3.5


def test_an_awaiter_that_was_not_met_itself_is_there(service: Service) -> None:
    service.builder.awaits(0, 1000, service.fetch, 2, awaiter=service.main)
    found = service.profile().awaiting
    assert found is not None
    assert shape(found) == [(0, "main", 11, None, 0.0), (1, "fetch", 22, "sleep", 1.0)]


def test_the_tree_is_shown_and_written(service: Service) -> None:
    builder = service.builder
    builder.awaits(0, 2000, service.main, 1)
    builder.awaits(0, 2000, service.fetch, 60, awaiter=service.main)
    path = str(service.path)
    shown = CliRunner().invoke(analyze, [path, "--tasks", "--tree"], env={"COLUMNS": "100"}).output
    rows = [line.split() for line in shown.splitlines() if "app.py" in line]
    assert rows == [
        ["1.00s", "0.1", "1.0", "main", "app.py:11"],
        ["60.0s", "6.0", "60", "└", "fetch", "app.py:22", "awaits", "sleep"],
    ]
    document = json.loads(CliRunner().invoke(analyze, [path, "--tasks", "--tree", "--json", "-"]).output)
    assert document["tachograph"] == {"document": "awaiting", "version": 1}
    assert [(row["depth"], row["function"], row["await_s"]) for row in document["tasks"]] == [
        (0, "main", 1.0),
        (1, "fetch", 60.0),
    ]
    refused = CliRunner().invoke(analyze, [path, "--tasks", "--tree", "--processes"])
    assert refused.exit_code == 2
    assert "--tasks --tree is a view of its own" in refused.output


def test_the_page_has_the_tree(service: Service) -> None:
    service.builder.cpu(service.builder.stack((service.main_code, 0)))
    service.builder.awaits(0, 2000, service.main, 1)
    service.builder.awaits(0, 2000, service.fetch, 60, awaiter=service.main)
    with Recording.open(service.path) as recording:
        page = report(build_report_data(recording, Question()))
    document, _ = block.read_block(page)
    rows = document["tables"]["awaiting"]
    assert [(row["depth"], row["function"], row["await_s"], row["awaited"]) for row in rows] == [
        (0, "main", 1.0, ""),
        (1, "fetch", 60.0, "sleep"),
    ]

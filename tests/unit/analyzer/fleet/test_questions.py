"""Questions on fleets with a known truth: what became slower, since when, and which rank is late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tachograph.analyzer.fleet as fleets
from tachograph.analyzer.commands.fleet import fleet as command
from tachograph.format import FormatError
from unit.analyzer.fleet.fleets import SOURCE, one
from unit.analyzer.recordings import Builder

pytestmark = pytest.mark.broad

RANK_SOURCE = "def step():\n    compute()\n    load()\n\n\ndef all_reduce():\n    wait()\n"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three versions, five recordings each; in the last one, of another source, line 3 has 40 % and not 25 %."""
    folder = tmp_path_factory.mktemp("fleet") / "versions"
    chance = np.random.default_rng(1)
    for number in range(15):
        version = number // 5 + 1
        query = (100 if version < 3 else 200) + 10 * int(chance.integers(-2, 3))
        moved = 0 if version < 3 else 1
        one(
            folder,
            number,
            {2 + moved: 150, 3 + moved: query, 4 + moved: 150},
            source="import os\n" * moved + SOURCE,
            labels={"version": f"1.{version}"},
            created_utc=f"2026-11-{10 + version:02}T00:00:00+00:00",
        )
    fleets.open(str(folder))
    return folder


def test_what_differs(versions: Path) -> None:
    rows = fleets.open(str(versions)).compare("version=1.2", "version=1.3", level="lines")
    told = {row.source.strip(): row for row in rows.itertuples()}
    query = told["query(request)"]
    assert query.verdict == "more"
    assert query.low < 0.15 < query.high
    assert rows["source"].tolist()[0] == "    query(request)"
    assert told["parse(request)"].verdict == "less"
    same = fleets.open(str(versions)).compare("version=1.1", "version=1.2", level="lines")
    assert set(same["verdict"]) == {"no evidence"}


def test_groups_must_be_apart(versions: Path) -> None:
    found = fleets.open(str(versions))
    with pytest.raises(FormatError, match="5 recordings are in both groups"):
        found.compare("version=1.1", "version=1.*")
    few = found.compare("path=run-000*", "version=1.3")
    assert few["verdict"].isna().all()


def test_since_when(tmp_path: Path) -> None:
    """Of four versions on four days, the third has twice the time in ``slow``."""
    chance = np.random.default_rng(2)
    number = 0
    for version in range(1, 5):
        for _ in range(4):
            slow = 40 if version < 3 else 80
            body = "def handle():\n    x\n\n\ndef slow():\n    y\n\n\nhandle()\n"
            builder = Builder(
                tmp_path / f"run-{number:03}.tacho",
                uuid=f"u{number}",
                host=f"h{number}",
                labels={"version": f"1.{version}"},
                created_utc=f"2026-11-{10 + version:02}T0{number % 6}:00:00+00:00",
            )
            file = builder.file("/srv/app.py", body)
            module = builder.code(file, "<module>", 1)
            for name, line, amount in (("handle", 1, 100), ("slow", 5, slow + 10 * int(chance.integers(-1, 2)))):
                for _ in range(amount // 10):
                    builder.cpu(builder.stack((module, 8), (builder.code(file, name, line), 1)), 10)
            builder.write()
            number += 1
    found = fleets.open(str(tmp_path))
    for by, since in (("version", "1.3"), ("day", "2026-11-13")):
        moved = found.when("slow", by=by)
        assert moved.attrs["since"] == since
        assert moved.attrs["p"] <= 0.01
        assert (moved.attrs["before"], moved.attrs["after"]) == pytest.approx((40 / 140, 80 / 180), abs=0.03)
        assert moved["recordings"].tolist() == [4] * 4
    assert found.when("handle").attrs["since"] == "1.3"  # its share falls when the other's grows
    assert found.when("slow", where="version=1.[34]").attrs["since"] is None
    with pytest.raises(FormatError, match="no recording has time in a function 'nothing'"):
        found.when("nothing")


def test_chance_is_no_step(tmp_path: Path) -> None:
    """Of fleets in which nothing changed, one in a hundred may be said to have a step."""
    from tachograph.analyzer.fleet.questions.when import _first_step

    chance = np.random.default_rng(6)
    found = 0
    for _ in range(200):
        weights = [chance.lognormal(3, 0.5, 6) for _ in range(5)]
        amounts = [weight * chance.beta(2, 8, 6) for weight in weights]
        found += _first_step(amounts, weights)[0] is not None
    assert found <= 6


def rank(folder: Path, number: int, load: int, waited: int, run: str = "r1") -> None:
    builder = Builder(
        folder / f"{run}-rank-{number}.tacho",
        uuid=f"{run}-{number}",
        host=f"node-{number // 4}",
        labels={"rank": str(number), "world_size": "8", "run": run},
        end_ns=1_000_000_000_000 + 2_000_000_000,
    )
    file = builder.file("/srv/train.py", RANK_SOURCE)
    module, step, meet = (
        builder.code(file, name, line) for name, line in (("<module>", 1), ("step", 1), ("all_reduce", 6))
    )
    for line, amount in ((1, 300), (2, load)):
        for _ in range(amount // 10):
            builder.cpu(builder.stack((module, 7), (step, line)), 10)
    builder.wait(builder.stack((module, 7), (meet, 1)), 0, waited)
    for number in range(10):
        builder.span("step", number * 100, number * 100 + 90)
    folder.mkdir(exist_ok=True)
    builder.write()


def test_the_late_rank(tmp_path: Path) -> None:
    """Rank 5 loads for 500 ms more than the others, who wait so much longer in the all-reduce."""
    for number in range(8):
        rank(tmp_path / "run", number, 600 if number == 5 else 100, 20 if number == 5 else 520)
    found = fleets.open(str(tmp_path / "run"))
    told = found.ranks()
    said = told.attrs
    assert (said["meeting"], said["meeting_file"], said["late"]) == ("all_reduce", "train.py", 5)
    assert said["late_s"] == pytest.approx(0.5)
    assert said["steps"] == 10
    row = told.set_index("rank").loc[5]
    assert (row["file"], row["line"], row["source"]) == ("train.py", 3, "    load()")
    assert row["more_s"] == pytest.approx(0.5)
    assert row["cpu_share"] == 1.0
    assert told.set_index("rank")["waited_s"].drop(5).to_numpy() == pytest.approx(0.5)
    assert found.ranks(function="reduce").attrs["late"] == 5
    result = CliRunner().invoke(command, ["ranks", str(tmp_path / "run"), "--workers", "1"])
    assert "rank 5 is late by 0.50 s (+0.4" in result.output
    assert ", 50 ms in each of 10" in result.output, result.output
    assert "it spends 0.50 s more than they computing on train.py:3  load()" in result.output


def test_ranks_that_are_even(tmp_path: Path) -> None:
    for number in range(8):
        rank(tmp_path / "run", number, 100, 0)
    told = fleets.open(str(tmp_path / "run")).ranks()
    assert (told.attrs["meeting"], told.attrs["late"]) == (None, None)


def test_equal_ranks_have_no_late_one(tmp_path: Path) -> None:
    """One of them always waits least: by how much, with an interval that includes nothing."""
    for number, waited in enumerate((380, 430, 520, 470)):
        rank(tmp_path / "run", number, 100, waited)
    found = fleets.open(str(tmp_path / "run")).ranks().attrs
    assert (found["meeting"], found["late"], found["last"]) == ("all_reduce", None, 0)
    assert found["late_low"] < 0 < found["late_s"] < found["late_high"]
    shown = CliRunner().invoke(command, ["ranks", str(tmp_path / "run"), "--workers", "1"]).output
    assert "no rank is late for certain in all_reduce: rank 0 waits least there, by 90 ms" in shown
    assert "(-0.10 .. +0.28 s)" in shown


def test_balanced_jobs_hardly_have_a_late_rank() -> None:
    from tachograph.analyzer.fleet.questions.ranks import lateness

    chance = np.random.default_rng(8)
    for size in (2, 4, 8):
        jobs = 1 + chance.normal(0, 0.15, (60, size))
        late = sum(lateness(job, int(np.argmin(job)), 10.0)[3] for job in jobs)
        assert late <= 7  # of 60, with 5 % each: 8 or more have a probability of 1 %
        planted = jobs.copy()
        planted[:, 1] -= 1
        if size > 2:
            assert sum(lateness(job, 1, 10.0)[3] for job in planted) >= 50


def test_processes_of_one_program_are_ranks(tmp_path: Path) -> None:
    """They meet at a barrier; the third one computes for 300 ms more, and the others wait for it."""
    builder = Builder(tmp_path / "run" / "job.tacho", end_ns=1_000_000_000_000 + 2_000_000_000)
    file = builder.file("/srv/train.py", RANK_SOURCE)
    step, meet = (builder.code(file, name, line) for name, line in (("step", 1), ("all_reduce", 6)))
    for number in range(4):
        _, thread = builder.process(200 + number, 10 + number, 1900)
        for _ in range(50 if number == 2 else 20):
            builder.cpu(builder.stack((step, 2)), 10, thread=thread)
        builder.wait(builder.stack((step, 3), (meet, 1)), 100, 200 if number == 2 else 500, thread=thread)
    (tmp_path / "run").mkdir()
    builder.write()
    found = fleets.open(str(tmp_path / "run")).ranks()
    assert (found.attrs["meeting"], found.attrs["late"]) == ("all_reduce", 2)
    assert found.attrs["late_s"] == pytest.approx(0.3)
    assert found["path"].tolist() == [f"process {200 + number}" for number in range(4)]
    row = found.set_index("rank").loc[2]
    assert (row["function"], row["line"], row["cpu_share"]) == ("step", 3, 1.0)


def test_ranks_of_several_runs_are_refused(tmp_path: Path) -> None:
    for run in ("r1", "r2"):
        for number in range(2):
            rank(tmp_path / "run", number, 100, 50, run)
    found = fleets.open(str(tmp_path / "run"))
    with pytest.raises(FormatError, match=r"rank 0 is there 2 times: choose one run, with --where run=\.\.\."):
        found.ranks()
    assert len(found.ranks("run=r2")) == 2
    with pytest.raises(FormatError, match="there is only one"):
        found.ranks(["run=r2", "rank=1"])


def test_memory(tmp_path: Path) -> None:
    for number in range(4):
        builder = Builder(tmp_path / f"run-{number}.tacho", uuid=f"u{number}", host=f"web-{number}")
        stack = builder.stack((builder.code(builder.file("/srv/app.py"), "keep", 1), 0))
        builder.memory("start", 0, 0)
        for at in range(0, 10_000, 100):
            builder.block(stack, 1000 * (number + 1), at)
        end = 100_000 * (number + 1)
        builder.memory("end", 10_000, end, obj_allocated_bytes=end)
        builder.cpu(stack, 10)
        builder.write()
    found = fleets.open(str(tmp_path))
    peak = found.memory().set_index("measure").loc["peak"]
    assert (peak["least"], peak["median"], peak["most"], peak["largest"]) == (1e5, 2.5e5, 4e5, "run-3.tacho")
    (leak,) = found.leaks(confirmed_on=3).itertuples()
    assert (leak.file, leak.line, leak.hosts, leak.of, leak.confirmed) == ("/srv/app.py", 1, 4, 4, True)
    assert 10_000 < leak.rate_bytes_per_s < 45_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "version=1.1", "version=1.3", "--lines"],
        ["compare", "version=1.1", "version=1.3", "--total"],
        ["when", "handle"],
        ["when", "shop.py:handle", "--by", "day"],
    ],
)
def test_the_commands(versions: Path, arguments: list[str]) -> None:
    name, *rest = arguments
    result = CliRunner().invoke(command, [name, str(versions), *rest, "--workers", "1"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(
        CliRunner().invoke(command, [name, str(versions), *rest, "--workers", "1", "--json", "-"]).output
    )
    assert found["tachograph"]["document"] == f"fleet-{name}"
    assert found["rows" if name == "compare" else "groups"]


def test_ranks_and_memory_that_are_not_there(versions: Path) -> None:
    for name, words in (
        ("ranks", "no recording has the label rank"),
        ("memory", "none of these recordings has memory"),
    ):
        result = CliRunner().invoke(command, [name, str(versions), "--workers", "1"])
        assert result.exit_code == 2
        assert words in result.output
        assert len(result.output.strip().splitlines()) == 1


def test_recordings_of_one_host_are_one_unit_of_a_step(tmp_path: Path) -> None:
    """Hosts differ, and each version ran on one of them ten times: of three hosts a side there is no evidence."""
    of_version = {"1.1": [(0, 30, 10), (2, 30, 1), (3, 50, 1)], "1.2": [(1, 50, 10), (4, 30, 1), (5, 50, 1)]}
    number = 0
    for version, hosts in of_version.items():
        for host, amount, times in hosts:
            for _ in range(times):
                one(tmp_path, number, {2: 100, 3: amount}, host=f"web-{host}", labels={"version": version})
                number += 1
    found = fleets.open(str(tmp_path))
    assert found.when("shop.py:3").attrs["since"] is None
    few = found.when("shop.py:3", where="host=web-[01]")  # of two hosts recordings are the units
    assert few.attrs["since"] == "1.2"

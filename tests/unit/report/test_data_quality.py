"""What is thought of the data, in all reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from tachograph.analyzer.profile.profile import Profile
from tachograph.analyzer.recording.quality import Loss
from tachograph.analyzer.render.html.head import summary
from tachograph.analyzer.render.terminal.report import report_lines
from tachograph.analyzer.report_data.headline import Verdict, remarks, verdict
from tachograph.analyzer.report_data.report_data import ReportData
from unit.analyzer.recordings import Builder


@pytest.fixture
def profile(builder: Builder, picture: Callable[..., ReportData]) -> Profile:
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)))
    profile = picture().profile
    return replace(profile, totals=replace(profile.totals, samples=1000, cpu_s=10.0, unsampled_s=0.0))


def losing(profile: Profile, *losses: tuple[str, int], state: str = "complete") -> Profile:
    entries = [Loss(name, count, "loss", "things that were lost", "take care") for name, count in losses]
    return replace(profile, quality=replace(profile.quality, losses=entries, state=state))


@pytest.mark.parametrize(
    ("losses", "state", "expected"),
    [
        ([], "complete", Verdict(good=True, text="nothing was lost")),
        ([], "recovered", Verdict(good=True, text="nothing was lost (recovered after a crash)")),
        ([], "recording", Verdict(good=False, text="nothing was lost (never finished)")),
        ([("stacks_torn", 5)], "complete", Verdict(good=True, text="hardly anything was lost")),
        ([("stacks_torn", 6)], "complete", Verdict(good=False, text="1 kind of data loss")),
        ([("records_dropped", 1)], "complete", Verdict(good=False, text="1 kind of data loss")),
    ],
)
def test_a_few_stacks_are_no_alarm(
    profile: Profile, losses: list[tuple[str, int]], state: str, expected: Verdict
) -> None:
    assert verdict(losing(profile, *losses, state=state)) == expected


def test_much_time_without_samples_is(profile: Profile) -> None:
    profile = replace(profile, totals=replace(profile.totals, unsampled_s=40.0))
    assert verdict(profile) == Verdict(good=False, text="80.0 % of the CPU time is in no sample")
    (remark,) = remarks(profile)
    assert "--interval" in remark


@pytest.mark.parametrize(("lacked", "told"), [(49.5, True), (0.2, False), (None, False)])
def test_time_without_a_processor_stands_beside_the_other_times(
    profile: Profile, lacked: float | None, told: bool
) -> None:
    totals = replace(profile.totals, wall_s=60.0, main_cpu_wait_s=lacked)
    profile = replace(profile, totals=totals)
    head = "\n".join(line.plain for line in report_lines(profile, Console(width=120)))
    assert ("49.5 s without a processor" in head) == told
    figures = {figure["label"]: figure["value"] for figure in summary(profile)["figures"]}
    assert figures.get("no processor") == ("49.5 s" if told else None)

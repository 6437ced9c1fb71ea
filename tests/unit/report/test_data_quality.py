"""What is thought of the data, in all reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from tachograph.analyzer.profile.profile import Profile
from tachograph.analyzer.recording.quality import Loss
from tachograph.analyzer.render.html.page_head import summary
from tachograph.analyzer.render.html.report_page import report
from tachograph.analyzer.render.terminal.report import report_lines
from tachograph.analyzer.report_data.headline import Entry, Ledger, Verdict, ledger, remarks, verdict
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
        ([("stacks_torn", 5)], "complete", Verdict(good=True, text="negligible loss: 0.5 % of the stacks")),
        ([("stacks_torn", 6)], "complete", Verdict(good=False, text="1 kind of data loss")),
        ([("records_dropped", 1)], "complete", Verdict(good=False, text="1 kind of data loss")),
    ],
)
def test_a_few_stacks_are_no_alarm(
    profile: Profile, losses: list[tuple[str, int]], state: str, expected: Verdict
) -> None:
    assert verdict(losing(profile, *losses, state=state)) == expected


@pytest.mark.parametrize("state", ["complete", "recovered"])
def test_without_samples_nothing_can_be_lost(profile: Profile, state: str) -> None:
    nothing = replace(losing(profile, state=state), totals=replace(profile.totals, samples=0, cpu_s=0.0))
    assert not verdict(nothing).good
    assert verdict(nothing).text.startswith("no CPU time was sampled")


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


NOTES = ["waiting was not recorded", "native functions have no names here", "another note"]


def lines_of_quality(profile: Profile, *, notes: bool = False) -> list[str]:
    """What stands between the totals and the first table, at the usual width."""
    lines = [line.plain for line in report_lines(profile, Console(width=80), notes=notes)]
    first = next(number for number, line in enumerate(lines) if line.startswith((" ✓", " !")))
    return lines[first : lines.index("", first)]


def noted(profile: Profile) -> Profile:
    """With all that may stand beside the verdict: what recording cost, and notes of each kind."""
    few = [Loss("stacks_torn", 4, "loss", "samples that were torn", "a few are normal")]
    also = [Loss("memory_shared", 2, "note", "crossings that share a row", "nothing is lost")]
    quality = replace(
        profile.quality, losses=few + also, notes=NOTES, recorder_cpu_s=0.0351, recorder_bytes=123_000_000
    )
    return replace(profile, quality=quality)


def test_notes_are_folded_where_nothing_was_lost(profile: Profile) -> None:
    profile = noted(profile)
    folded = lines_of_quality(profile)
    assert len(folded) <= 2
    assert folded[0].endswith("· 5 notes: analyze --notes")
    shown = " ".join(" ".join(lines_of_quality(profile, notes=True)).split())
    assert "analyze --notes" not in shown
    for text in ("4 samples that were torn: a few are normal", "2 crossings that share a row", *NOTES):
        assert text in shown


def test_what_was_lost_is_never_folded(profile: Profile) -> None:
    lossy = losing(noted(profile), ("records_dropped", 3))
    text = " ".join(" ".join(lines_of_quality(lossy)).split())
    assert "! 1 kind of data loss" in text
    assert "! 3 things that were lost: take care" in text
    assert "3 notes: analyze --notes" in text
    # A recording that was never finished has no losses that were counted, and its notes say why.
    unfinished = replace(profile, quality=replace(profile.quality, state="recording", notes=NOTES))
    assert ledger(unfinished) == Ledger([Entry(note) for note in NOTES], [])


def test_the_page_counts_what_its_fold_holds(profile: Profile, picture: Callable[..., ReportData]) -> None:
    for each, count in ((noted(profile), 5), (losing(noted(profile), ("records_dropped", 3)), 4)):
        page = report(replace(picture(), profile=each))
        (fold,) = re.findall(r'<details class="quality.*?</details>', page, re.DOTALL)
        assert re.findall(r"<small>(\d+) notes?</small>", fold) == [str(count)]
        assert fold.count("<li") == count

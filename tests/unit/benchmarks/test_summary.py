"""Ratios from rows made by hand."""

from dataclasses import replace

import pytest

from harness.arms import BARE, BARE_AGAIN
from harness.report import matrix, missing, overview, summary, table
from harness.store import NEVER_ENDED, Row
from harness.summary import growth, ratio, size

ROW = Row(
    round=0,
    program="mdp",
    arm=BARE,
    loops=2,
    in_program_s=4.0,
    in_program_cpu_s=4.0,
    whole_s=5.0,
    whole_cpu_s=5.0,
    peak_rss_bytes=1 << 20,
    program_peak_bytes=10_000_000,
    recording_bytes=None,
    after_program_s=0.1,
    start_up_s=None,
)


def rounds(arm: str, *times: float) -> list[Row]:
    return [replace(ROW, round=number, arm=arm, in_program_s=time) for number, time in enumerate(times)]


def in_program(row: Row) -> float | None:
    return row.in_program_s


def test_ratios_are_taken_within_a_round() -> None:
    # The machine slows down threefold over the rounds; the arm always costs a tenth more.
    rows = rounds(BARE, 1, 2, 3) + rounds("peer", 1.1, 2.2, 3.3)
    found = ratio(rows, "mdp", "peer", BARE, in_program)
    assert found is not None
    assert found.rounds == 3
    assert [found.median, found.of_medians, found.low, found.high] == pytest.approx([1.1] * 4)


def test_what_others_do_to_the_machine_is_not_in_the_ratio_of_the_fastest_runs() -> None:
    rows = rounds(BARE, 1, 2, 1, 1) + rounds("peer", 1.5, 1.1, 1.9, 1.2)
    found = ratio(rows, "mdp", "peer", BARE, in_program)
    assert found is not None
    assert found.of_fastest == pytest.approx(1.1)
    assert found.of_medians == pytest.approx(1.35)


def test_only_rounds_with_both_arms_count() -> None:
    rows = rounds(BARE, 1, 1, 1) + rounds("peer", 2)
    found = ratio(rows, "mdp", "peer", BARE, in_program)
    assert found is not None
    assert found.rounds == 1


def test_an_arm_that_never_ends_has_no_ratio_and_is_shown_so() -> None:
    unended = [replace(row, in_program_s=None, loops=0, outcome=NEVER_ENDED) for row in rounds("peer", 1, 1)]
    rows = rounds(BARE, 1, 1) + rounds(BARE_AGAIN, 1, 1) + unended
    assert ratio(rows, "mdp", "peer", BARE, in_program) is None
    assert NEVER_ENDED in table(summary(rows, ["mdp"], ["peer"]), ["mdp"], ["peer"])


def peaks(arm: str, *sizes: int | None) -> list[Row]:
    return [replace(ROW, round=number, arm=arm, program_peak_bytes=size) for number, size in enumerate(sizes)]


def test_memory_is_compared_within_a_round_and_only_where_both_are_known() -> None:
    bare, peer = peaks(BARE, 10, 20, None), peaks("peer", 14, 24, 99)
    found = size(bare + peer, "mdp", "peer", BARE)
    assert (found.program_peak, found.above_bare) == (24, 4)
    assert size(bare, "mdp", "peer", BARE).above_bare is None


def test_what_is_left_on_disk_is_told_per_second_of_the_program() -> None:
    rows = [replace(row, recording_bytes=3000) for row in rounds("peer", 2, 1, 3)]
    found = size(rows, "mdp", "peer", BARE)
    assert (found.recording, found.recording_per_s) == (3000, 1500)
    assert size(rounds("peer", 2), "mdp", "peer", BARE).recording_per_s is None


def test_growth_leaves_out_what_every_recording_has() -> None:
    short = [replace(row, recording_bytes=5000) for row in rounds("peer", 2)]
    long = [replace(row, program="long", recording_bytes=9000) for row in rounds("peer", 10)]
    assert growth(short + long, "mdp", "long", "peer") == 500
    assert growth(short, "mdp", "long", "peer") is None


def test_an_arm_is_compared_with_the_bare_run_of_its_own_kind() -> None:
    rows = rounds(BARE, 1, 1) + rounds(BARE_AGAIN, 1, 1) + rounds("bare, other", 2, 2) + rounds("peer", 3, 3)
    found = summary(rows, ["mdp"], ["peer"], {"peer": "bare, other"})
    assert found["over_programs"]["peer"]["in_program"]["median"] == 1.5
    assert "1.500" in overview(found, ["peer"])
    assert "1.500" in matrix(found, ["mdp"], ["peer"])


def test_what_an_arm_lacks_is_said_in_words() -> None:
    unended = [replace(row, in_program_s=None, outcome=NEVER_ENDED) for row in rounds("peer", 1)]
    rows = rounds(BARE, 1) + rounds(BARE_AGAIN, 1) + unended + [replace(ROW, program="p"), replace(ROW, program="q")]
    found = summary(rows, ["mdp", "p", "q"], ["peer"])
    assert missing(found, "peer") == "over the bound with 1, not tried with 2 of 3"
    assert missing(summary(rounds(BARE, 1) + rounds("peer", 1), ["mdp"], ["peer"]), "peer") == ""

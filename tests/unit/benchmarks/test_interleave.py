"""Which steps a comparison runs, and in which order."""

from dataclasses import replace
from pathlib import Path

from harness.arms import BARE, BARE_AGAIN, Arm, is_bare
from harness.interleave import LongRun, Plan, hopeless, measure
from harness.measure import START_UP, Bench
from harness.store import ENDED, NEVER_ENDED, Row, Store

ROW = Row(
    round=0,
    program="p",
    arm="a",
    loops=1,
    in_program_s=1.0,
    in_program_cpu_s=1.0,
    whole_s=1.0,
    whole_cpu_s=1.0,
    peak_rss_bytes=1,
    program_peak_bytes=None,
    recording_bytes=None,
    after_program_s=None,
    start_up_s=None,
)
ARMS = [Arm("a", "x"), Arm("b", "x"), Arm("c", "x")]


def test_every_round_has_every_arm_and_another_one_begins() -> None:
    steps = list(Plan(["p", "q"], ARMS, rounds=3, seconds=1.0).steps())
    assert len(steps) == len({(number, name, arm.name) for number, name, arm in steps}) == 3 * 2 * 3
    firsts = [next(arm.name for number, name, arm in steps if (number, name) == (turn, "p")) for turn in range(3)]
    assert firsts == ["a", "b", "c"]
    assert [name for number, name, _ in steps if number == 0] == ["p"] * 3 + ["q"] * 3


def test_long_runs_and_starts_have_rounds_of_their_own() -> None:
    plan = Plan(["p"], ARMS, rounds=3, seconds=1.0, long=LongRun("long p", "p", 10.0, 2), start_ups=4)
    rounds = {name: {number for number, step, _ in plan.steps() if step == name} for name in ("p", "long p", START_UP)}
    assert rounds == {"p": {0, 1, 2}, "long p": {0, 1}, START_UP: {0, 1, 2, 3}}


def test_slow_peers_take_part_once_and_peers_in_no_long_run() -> None:
    peers = [Arm("light", "x", peer=True), Arm("slow", "x", peer=True, brief=True)]
    plan = Plan(["p"], ARMS + peers, rounds=3, seconds=1.0, long=LongRun("long p", "p", 10.0, 3), peer_rounds=2)
    rounds = {arm: [number for number, name, each in plan.steps() if (name, each.name) == ("p", arm)] for arm in "ab"}
    assert rounds == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert [number for number, _, arm in plan.steps() if arm.name == "light"] == [0, 1]
    assert [number for number, _, arm in plan.steps() if arm.name == "slow"] == [0]


def test_what_is_compared_is_not_bare_and_knows_its_bare_arm() -> None:
    arms = [Arm(BARE, "x"), Arm(BARE_AGAIN, "x"), Arm("a", "x"), Arm("bare, p", "x"), Arm("b", "x", against="bare, p")]
    assert Plan(["p"], arms, rounds=1, seconds=1.0).compared() == (["a", "b"], {"b": "bare, p"})
    assert not is_bare("barely")


class Watched(Bench):
    """Runs nothing: `hangs` never ends, everything else takes a second."""

    def calibrate(self, arm: Arm, program: str, seconds: float) -> int:
        return 7

    def program(self, round_number: int, arm: Arm, program: str, loops: int) -> Row:
        outcome = NEVER_ENDED if arm.name == "hangs" else ENDED
        return replace(ROW, round=round_number, program=program, arm=arm.name, loops=loops, outcome=outcome)


def test_an_arm_that_never_ends_is_given_up_and_a_brief_one_runs_a_third_of_the_passes(tmp_path: Path) -> None:
    arms = [Arm(BARE, "x"), Arm("hangs", "x", peer=True), Arm("brief", "x", peer=True, brief=True)]
    store = Store(tmp_path)
    measure(Plan(["p", "q", "r", "s"], arms, rounds=2, seconds=1.0), Watched("none", None, 1.0), store)
    rows = store.rows()
    assert [row.program for row in rows if row.arm == "hangs"] == ["p", "q"]
    assert {row.loops for row in rows if row.arm == BARE} == {7}
    assert [row.loops for row in rows if row.arm == "brief"] == [3] * 4


def test_a_peer_that_took_too_long_is_spared_programs_of_the_same_kind_and_no_others() -> None:
    rows = [replace(ROW, outcome=NEVER_ENDED, program="tree_a"), replace(ROW, program="q")]
    rows.append(replace(ROW, outcome=NEVER_ENDED, program="r"))
    assert hopeless(rows, "tree_b", "a")
    assert not hopeless(rows, "p", "a")
    assert not hopeless(rows, "tree_b", "b")

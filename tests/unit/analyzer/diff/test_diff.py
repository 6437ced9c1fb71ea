"""Hand-built recordings with known differences."""

from __future__ import annotations

import json
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from tachograph.analyzer import diff as comparison
from tachograph.analyzer.diff import DiffResult, Level
from tachograph.analyzer.diff.gate import judge, parse_condition
from tachograph.analyzer.render.json_difference import document
from tachograph.analyzer.render.markdown.diff_summary import summary
from tachograph.analyzer.render.terminal.diff_lines import show
from tachograph.analyzer.report_data.difference_sections import scope_fact, total_rows
from tachograph.format import FormatError, load_specification
from unit.analyzer.diff.conftest import CALL, SORT, SOURCE, WORK, Make
from unit.analyzer.recordings import START, Builder

pytestmark = pytest.mark.broad

diff = partial(comparison.diff, spread=0.01)
"""One run a side gives verdicts only if it is said how much runs differ."""


def values(level: Level, metric: str, **place: Any) -> pd.Series:
    """The one row of a level that is at ``place``."""
    frame = level.metric(metric)
    for column, wanted in place.items():
        frame = frame[frame[column] == wanted]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def statuses(level: Level) -> dict[str, str]:
    name = "function" if level.name in ("functions", "calls") else "source"
    return {str(row[name]).strip(): str(row["status"]) for _, row in level.places.iterrows()}


def test_two_recordings(make: Make) -> None:
    result = diff([make("a", {WORK: 100, SORT: 100})], [make("b", {WORK: 200, SORT: 103})])
    work, sort = (values(result.lines, "cpu", line=line) for line in (WORK, SORT))
    assert (work["base"], work["new"], work["difference"]) == pytest.approx((1.0, 2.0, 1.0))
    assert 0 < work["low"] < 1 < work["high"]
    assert work["change"] == pytest.approx(1.0)
    assert (work["verdict"], sort["verdict"]) == ("slower", "no evidence")
    assert sort["low"] < 0 < sort["high"]
    assert result.lines.compared("cpu") == 2
    assert values(result.totals, "cpu")["difference"] == pytest.approx(1.03)
    assert values(result.functions, "total_cpu", function="f")["verdict"] == "slower"
    assert values(result.files, "cpu")["verdict"] == "slower"
    assert values(result.threads, "cpu", name="MainThread")["new"] == pytest.approx(3.03)


def test_the_other_way_round_it_is_faster(make: Make) -> None:
    a, b = make("a", {WORK: 100}, allocated={WORK: 50_000_000}), make("b", {WORK: 200}, allocated={WORK: 90_000_000})
    back, forth = diff([b], [a]), diff([a], [b])
    for metric, less, more in (("cpu", "faster", "slower"), ("memory.allocated", "less", "more")):
        one, other = (values(each.lines, metric, line=WORK) for each in (back, forth))
        assert (one["verdict"], other["verdict"]) == (less, more)
        assert one["difference"] == -other["difference"]
        assert (one["low"], one["high"]) == pytest.approx((-other["high"], -other["low"]))


def test_memory(make: Make) -> None:
    old = make("a", {WORK: 10}, allocated={WORK: 50_000_000, SORT: 1_000_000})
    new = make("b", {WORK: 10}, allocated={WORK: 50_000_000, SORT: 80_000_000})
    result = diff([old], [new])
    assert values(result.totals, "memory.peak")["difference"] == 79_000_000
    assert values(result.totals, "memory.peak")["verdict"] == "more"
    assert values(result.lines, "memory.live_at_end", line=SORT)["new"] == pytest.approx(80_000_000)
    assert values(result.lines, "memory.live_at_end", line=SORT)["verdict"] == "more"
    assert values(result.lines, "memory.live_at_end", line=WORK)["verdict"] == "no evidence"


def test_few_sampled_blocks_that_are_elsewhere_are_no_difference(make: Make) -> None:
    """What is held is known exactly; which line holds it is known from the one block that was sampled of it."""

    def runs(side: str, line: int) -> list[Path]:
        sizes = (400_000, 400_016, 399_984)
        return [make(f"{side}{n}", {WORK: 100}, allocated={line: size}, mean=524_288) for n, size in enumerate(sizes)]

    result = diff(runs("base", WORK), runs("new", SORT))
    for line in (WORK, SORT):
        assert values(result.lines, "memory.live_at_end", line=line)["verdict"] == "no evidence"
    assert result.summary.verdict == "same"


def test_a_line_without_sampled_blocks_may_still_hold_some(make: Make) -> None:
    """Blocks are sampled one in each 512 KiB: that none was seen says less than 1.94 MB, with 95 % confidence."""
    result = diff(
        [make("a", {WORK: 10}, allocated={WORK: 50_000_000, SORT: 6_000_000})],
        [make("b", {WORK: 10}, allocated={WORK: 50_000_000})],
    )
    row = values(result.lines, "memory.live_at_end", line=SORT)
    assert row["difference"] == -6_000_000
    assert row["high"] >= -6_000_000 + 1_900_000


def test_one_sample_that_stands_for_many_is_one_observation(make: Make) -> None:
    """Where there was no room for all samples, one stands for 14 MB: also of what a line calls, and of a path."""
    old = make("a", {WORK: 10}, allocated={WORK: 50_000_000}, mean=14_680_064, counted=65_000_000)
    new = make("b", {WORK: 10}, allocated={WORK: 50_000_000, SORT: 600}, mean=14_680_064, counted=65_000_000)
    result = diff([old], [new])
    for level in (result.lines, result.functions, result.calls):
        names = level.values["metric"].str.contains("memory.allocated")
        assert names.any()
        assert set(level.values[names]["verdict"]) <= {"no evidence", "not judged"}, level.name


def test_what_was_not_recorded_is_left_out_and_not_zero(make: Make) -> None:
    result = diff([make("a", {WORK: 10})], [make("b", {WORK: 10})])
    assert not result.lines.knows("memory.allocated")
    assert "memory.peak" not in set(result.totals.values["metric"])


def test_waiting(make: Make) -> None:
    result = diff([make("a", {WORK: 10}, waits={CALL: 1})], [make("b", {WORK: 10}, waits={CALL: 5})])
    assert values(result.lines, "main_wait", line=CALL)["difference"] == pytest.approx(4.0)
    assert values(result.lines, "main_wait", line=CALL)["verdict"] == "slower"
    assert values(result.totals, "main_wait")["verdict"] == "slower"
    # All threads together may merely be idle for longer.
    assert values(result.totals, "wait")["verdict"] == "no evidence"


def test_a_busy_machine_is_not_a_slower_program(make: Make, tmp_path: Path) -> None:
    """Both runs use the same CPU time; in one of them half of the wall time passed without a processor."""

    def run(name: str, busy_s: float) -> Path:
        builder = Builder(tmp_path / f"{name}.tacho", end_ns=START + round((5 + busy_s) * 1e9))
        stack = builder.stack((builder.code(builder.file("/srv/a/app.py", SOURCE), "<module>"), 9))
        for _ in range(500):
            builder.cpu(stack)
        builder.wait(stack, 0, busy_s * 1000, target=[each.name for each in targets].index("cpu"))
        return builder.write()

    targets = load_specification().enums["target"]
    result = diff([run("a", 0.1)], [run("b", 5)])
    assert values(result.totals, "wall")["verdict"] == "not_judged"
    assert values(result.totals, "cpu_wait")["verdict"] == "no evidence"
    assert any("the machine was busy in b.tacho" in remark for remark in result.remarks)
    free = diff([make("c", {WORK: 500}, end_ns=START + 5 * 10**9)], [make("d", {WORK: 500}, end_ns=START + 10**10)])
    assert values(free.totals, "wall")["verdict"] == "slower"


def test_lines_are_followed_through_an_edit_in_another_checkout(make: Make) -> None:
    edited = SOURCE.replace("import x\n", "import x\nimport y\n\nLIMIT = 3\n").replace(
        "work(item)", "work(item, LIMIT)"
    )
    edited = edited.replace("    return sorted(items)\n", "    queue = Heap.of(*x)\n    yield from queue.popped()\n")
    old = make("a", {WORK: 100, SORT: 30})
    new = make("b", {WORK + 3: 300, SORT + 4: 40}, source=edited, path="/srv/b/app.py")
    result = diff([old], [new])
    work = values(result.lines, "cpu", base_line=WORK)
    assert (work["line"], work["base"], work["new"], str(work["status"])) == (WORK + 3, 1.0, 3.0, "edited")
    assert (work["source"].strip(), work["base_source"].strip()) == ("work(item, LIMIT)", "work(item)")
    assert (work["base_file"], work["new_file"]) == ("/srv/a/app.py", "/srv/b/app.py")
    assert values(result.lines, "cpu", base_line=SORT)["status"] == "vanished"
    assert values(result.lines, "cpu", line=SORT + 4)["status"] == "new"
    assert values(result.lines, "cpu", line=SORT + 4)["base"] == 0
    assert (str(result.files.places["status"][0]), len(result.files.places)) == ("moved", 1)
    assert statuses(result.functions) == {"f": "edited", "<module>": "edited"}


def test_code_that_merely_has_no_time_any_more_has_not_vanished(make: Make) -> None:
    result = diff([make("a", {WORK: 100, SORT: 50})], [make("b", {WORK: 100})])
    assert values(result.lines, "cpu", line=SORT)["status"] == "same"
    assert values(result.lines, "cpu", line=SORT)["verdict"] == "faster"


def test_a_renamed_function(make: Make) -> None:
    body = "".join(f"        step_{n} = work(item, {n}) + other(item)\n" for n in range(10))
    base = SOURCE.replace("        work(item)\n", body)
    new = base.replace("def f(", "def process(").replace("f(x.items)", "process(x.items)")
    result = diff([make("a", {8: 50}, source=base)], [make("b", {8: 120}, source=new, function="process")])
    row = values(result.functions, "total_cpu", function="process")
    assert (row["base_function"], str(row["status"]), row["verdict"]) == ("f", "renamed", "slower")
    assert (row["base"], row["new"]) == pytest.approx((0.5, 1.2))
    assert values(result.calls, "cpu", function="process")["base"] == pytest.approx(0.5)


def test_merged_call_tree(make: Make) -> None:
    result = diff([make("a", {WORK: 100, CALL: 20})], [make("b", {WORK: 200, SORT: 10, CALL: 20})])
    frame = result.calls.metric("cpu").sort_index()
    assert frame["function"].tolist() == ["<module>", "f"]
    assert frame["parent"].tolist() == [-1, 0]
    assert frame["base"].tolist() == pytest.approx([1.2, 1.0])
    assert frame["new"].tolist() == pytest.approx([2.3, 2.1])
    assert frame["verdict"].tolist() == ["slower", "slower"]


def test_a_changed_file_without_text_has_no_verdicts_by_line(make: Make, tmp_path: Path) -> None:
    def without_text(name: str, digest: str, count: int) -> Path:
        builder = Builder(tmp_path / f"{name}.tacho")
        file = builder.file("/srv/app.py")
        builder.rows["files"][file]["sha256"] = digest * 64
        for _ in range(count):
            builder.cpu(builder.stack((builder.code(file, "f", 4), 2)))
        return builder.write()

    result = diff([without_text("a", "1", 10)], [without_text("b", "2", 500)])
    assert set(result.lines.places["status"]) == {"not followed"}
    assert set(result.lines.values["verdict"]) == {"unknown"}
    assert values(result.functions, "cpu", function="f")["verdict"] == "slower"
    assert any("cannot be followed" in remark for remark in result.remarks)


def groups(make: Make, base: list[int], new: list[int]) -> DiffResult:
    return diff(
        [make(f"a{n}", {WORK: count, SORT: 100}) for n, count in enumerate(base)],
        [make(f"b{n}", {WORK: count, SORT: 100}) for n, count in enumerate(new)],
    )


def test_groups_are_judged_by_how_much_runs_differ(make: Make) -> None:
    steady = groups(make, [300, 305, 310], [360, 365, 370])
    assert values(steady.lines, "cpu", line=WORK)["verdict"] == "slower"
    assert values(steady.lines, "cpu", line=WORK)["base"] == pytest.approx(3.05)
    assert steady.spread is None


def test_runs_that_differ_much_are_no_evidence(make: Make) -> None:
    noisy = groups(make, [200, 305, 410], [260, 365, 470])
    row = values(noisy.lines, "cpu", line=WORK)
    assert row["verdict"] == "no evidence"
    assert row["difference"] == pytest.approx(0.6)
    # As single recordings the same numbers would be a verdict.
    single = diff([make("c", {WORK: 305})], [make("d", {WORK: 410})])
    assert values(single.lines, "cpu", line=WORK)["verdict"] == "slower"


def test_a_file_that_only_some_runs_saw_is_one_file(make: Make, tmp_path: Path) -> None:
    def with_library(name: str, path: str) -> Path:
        builder = Builder(tmp_path / f"{name}.tacho")
        app = builder.code(builder.file("/srv/a/app.py", SOURCE), "<module>")
        lib = builder.code(builder.file("/srv/lib/tool.py", "x = 1\ny = 2\n"), "tool")
        for _ in range(100):
            builder.cpu(builder.stack((app, 9), (lib, 1)))
        return builder.write()

    result = diff([make("a", {WORK: 100}), with_library("b", "")], [with_library("c", ""), make("d", {WORK: 100})])
    frame = result.files.metric("cpu").set_index("file")
    assert frame.loc["/srv/lib/tool.py", ["base", "new"]].tolist() == [0.5, 0.5]
    assert set(result.lines.places["status"]) == {"same"}


def test_shares(make: Make) -> None:
    result = diff([make("a", {WORK: 100, SORT: 100})], [make("b", {WORK: 1000, SORT: 1000})], shares=True)
    row = values(result.lines, "cpu", line=WORK)
    assert (row["base"], row["new"], row["verdict"]) == (0.5, 0.5, "no evidence")
    assert values(result.totals, "cpu")["difference"] == pytest.approx(18.0)


def test_one_scope_for_both(tmp_path: Path) -> None:
    """A program whose project has little time left: its lines are compared, and not those of libraries."""

    def run(name: str, samples: int) -> Path:
        """So many samples of a library below the project's line, and 200 of a library that none of its lines called."""
        builder = Builder(tmp_path / f"{name}.tacho")
        app = builder.code(builder.file("/srv/a/app.py", SOURCE), "<module>")
        lib = builder.code(builder.file("/usr/lib/python3.13/json/decoder.py", "x = 1\n"), "decode")
        for stack, count in ((((app, CALL - 1), (lib, 0)), samples), (((lib, 0),), 200)):
            for _ in range(count):
                builder.cpu(builder.stack(*stack))
        return builder.write()

    result = diff([run("a", 300)], [run("b", 5)])
    assert (result.scope, result.widened) == ("project", False)
    assert {run.profile.scope for run in (*result.base, *result.new)} == {"project"}
    assert values(result.lines, "cpu", line=CALL)["difference"] == pytest.approx(-2.95)
    assert scope_fact(result) is None
    little = diff([run("c", 6)], [run("d", 5)])
    assert (little.scope, little.widened) == ("all", True)
    assert scope_fact(little) == "all code: little of it is the project's"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sampler": "signal"}, "sampler native and signal"),
        ({"interval_ns": 1_000_000}, "interval 10 ms and 1 ms"),
        ({"python_version": "3.12.1"}, "Python 3.13 and 3.12"),
        ({"parameters": {"waits": False}}, "whether waiting was recorded yes and no"),
        ({"parameters": {"memory": True}}, "whether memory was recorded no and yes"),
    ],
)
def test_what_cannot_be_compared_is_refused(make: Make, options: dict[str, Any], reason: str) -> None:
    a, b = make("a", {WORK: 10}), make("b", {WORK: 10}, **options)
    with pytest.raises(FormatError, match=f"cannot be compared: {reason}.*--anyway"):
        diff([a], [b])
    assert any(reason in remark for remark in diff([a], [b], anyway=True).remarks)


def test_programs_that_have_nothing_in_common_are_refused(make: Make) -> None:
    server = make("server", {WORK: 10}, path="/srv/a/site.py", source="import http\n\n\ndef f():\n    pass\n\n\nf()\n")
    script = make("script", {WORK: 10})
    set_argv(server, ["gunicorn", "site:app"])
    with pytest.raises(FormatError, match=r"cannot be compared: program gunicorn and program\.py .*--anyway"):
        diff([server], [script])
    with pytest.raises(FormatError, match=r"program program\.py and gunicorn on one side"):
        diff([script], [script, server])
    assert any("program gunicorn" in remark for remark in diff([server], [script], anyway=True).remarks)
    # Other arguments, and a script that was copied and edited, are no obstacle.
    longer = make("longer", {WORK: 10})
    set_argv(longer, ["/opt/program.py", "--more"])
    assert diff([script], [longer]).remarks
    text = "".join(f"def step_{n}(item):\n    return item.frobnicated({n})\n" for n in range(9)) + SOURCE
    one, other = (
        make(name, {WORK: 10}, path=f"/srv/a/{name}.py", source=source)
        for name, source in (("words", text), ("words_new", text.replace("sorted", "list")))
    )
    set_argv(one, ["words.py"])
    set_argv(other, ["words_new.py"])
    assert not [remark for remark in diff([one], [other]).remarks if "not comparable" in remark]


def set_argv(recording: Path, argv: list[str]) -> None:
    """Makes a recording one of another command."""
    manifest = json.loads((recording / "manifest.json").read_text())
    (recording / "manifest.json").write_text(json.dumps({**manifest, "argv": argv}))


def test_an_unknown_sampler_is_called_so(make: Make) -> None:
    """What a recording does not say leaves no hole in the message."""
    silent = make("silent", {WORK: 10}, sampler="")
    with pytest.raises(FormatError, match=r"cannot be compared: sampler native and unknown \("):
        diff([make("a", {WORK: 10})], [silent])


@pytest.fixture
def busy(tmp_path: Path) -> Make:
    """Writes a recording of SOURCE that had no processor half of the time, with so many samples and bytes held."""
    target = [each.name for each in load_specification().enums["target"]].index("cpu")

    def write(name: str, samples: int = 500, held: int | None = None) -> Path:
        builder = Builder(tmp_path / f"{name}.tacho", end_ns=START + 10**10)
        stack = builder.stack((builder.code(builder.file("/srv/a/app.py", SOURCE), "<module>"), 9))
        for _ in range(samples):
            builder.cpu(stack)
        builder.wait(stack, 0, 5000, target=target)
        if held is not None:
            builder.block(stack, held, 10, mean=1)
            builder.memory("start", 0, 0)
            builder.memory("end", 9000, held, obj_allocated_bytes=held)
        return builder.write()

    return write


def test_a_remark_on_many_recordings_is_said_once(busy: Make) -> None:
    result = diff([busy("a"), busy("b"), busy("c")], [busy("d"), busy("e"), busy("f")])
    (remark,) = [remark for remark in result.remarks if "busy" in remark]
    assert remark.startswith("the machine was busy in 6 of 6 recordings (no processor for 30.0 s of 60.0 s)")
    assert result.summary.verdict == "not_judged"


def test_a_busy_machine_changes_times_and_not_what_is_held(busy: Make) -> None:
    base = [busy(f"a{number}", 500 + number, 50_000_000 + number) for number in range(3)]
    new = [busy(f"b{number}", 700 + number, 80_000_000 + number) for number in range(3)]
    result = diff(base, new)
    assert values(result.totals, "memory.peak")["verdict"] == "more"
    assert values(result.lines, "memory.allocated", line=CALL)["verdict"] == "more"
    assert values(result.totals, "cpu")["verdict"] == "not_judged"
    assert values(result.lines, "cpu", line=CALL)["verdict"] == "not_judged"
    assert result.summary.verdict == "more"
    assert result.summary.sentence.startswith("more: peak memory +60.0 %")
    assert "; not judged: the machine was busy" in result.summary.sentence
    gate = judge(result, [parse_condition("memory.peak>5%"), parse_condition("cpu>5%")])
    assert [each.outcome.value for each in gate] == ["failed", "undecided"]


def test_on_a_busy_machine_a_change_is_found_that_no_neighbour_makes(busy: Make) -> None:
    """CPU time halves: beyond what a busy machine does to one and the same program."""
    base = [busy(f"a{number}", 1000 + 9 * number) for number in range(3)]
    half = diff(base, [busy(f"b{number}", 500 + 7 * number) for number in range(3)])
    assert values(half.totals, "cpu")["verdict"] == "faster"
    assert half.summary.verdict == "faster"
    assert half.summary.sentence.startswith("faster: CPU -49.8 % (")
    new = [busy(f"c{number}", 700 + 7 * number) for number in range(3)]
    third = diff(base, new)
    assert values(third.totals, "cpu")["verdict"] == "not_judged"
    assert third.summary.sentence.startswith("not judged: the machine was busy")
    assert "in turns, to know (--anyway judges these)" in third.summary.sentence
    assert comparison.diff(base, new, anyway=True).summary.verdict == "faster"


def test_one_run_a_side_on_a_busy_machine_is_not_judged_by_its_times_at_all(busy: Make) -> None:
    one = diff([busy("a", 1000)], [busy("b", 700)])
    assert one.summary.verdict == "not_judged"
    assert "--anyway" not in one.summary.sentence


def test_the_answer_names_what_changed_most(busy: Make) -> None:
    base = [busy(f"a{number}", 1000 + 9 * number) for number in range(3)]
    new = [busy(f"b{number}", 700 + 7 * number) for number in range(3)]
    assert "and the sides differ by CPU -29.9 %" in diff(base, new).summary.sentence


def test_one_run_a_side_judges_what_is_counted(make: Make, busy: Make) -> None:
    """Bytes hardly differ between runs: 3 % of a loop are found, and nothing is said of times."""

    def run(maker: Make, name: str, size: int) -> Path:
        return maker(name, {WORK: 300}, allocated={WORK: size, SORT: 50_000_000})

    result = comparison.diff([run(make, "a", 50_000_000)], [run(make, "b", 51_500_000)])
    assert values(result.totals, "memory.allocated")["verdict"] == "more"
    assert values(result.lines, "memory.allocated", line=WORK)["verdict"] == "more"
    assert values(result.lines, "memory.allocated", line=SORT)["verdict"] == "no evidence"
    assert values(result.totals, "cpu")["verdict"] == "not_judged"
    assert values(result.totals, "memory.peak")["verdict"] == "not_judged"
    assert result.summary.sentence.startswith("more: allocated +1.5 % (")
    assert f"because of app.py:{WORK}; not judged: one run a side differs" in result.summary.sentence
    (gate,) = judge(result, [parse_condition("memory.allocated>0.5%")])
    assert gate.outcome.value == "failed"
    same = comparison.diff([run(make, "c", 50_000_000)], [run(make, "d", 50_050_000)])
    assert same.summary.verdict == "not_judged"
    on_busy = comparison.diff([busy("e", held=50_000_000)], [busy("f", held=80_000_000)])
    assert on_busy.summary.verdict == "more"
    assert values(on_busy.totals, "memory.peak")["verdict"] == "not_judged"


@pytest.mark.parametrize("machine", ["quiet", "busy"])
def test_one_run_a_side_begins_with_the_time_that_changed_beyond_what_a_machine_does(
    make: Make, busy: Make, machine: str
) -> None:
    """Three times faster, and 2 % more is allocated: the time is stated, and no verdict."""

    def run(name: str, work: int, size: int) -> Path:
        if machine == "busy":
            return busy(name, work, size)
        return make(name, {WORK: work, SORT: 40}, allocated={WORK: size})

    result = comparison.diff([run("a", 600, 50_000_000)], [run("b", 200, 51_500_000)])
    assert result.summary.verdict == "not_judged"
    first, why, other = result.summary.sentence.split("; ")
    line = CALL if machine == "busy" else WORK
    amounts = "6.00 s -> 2.00 s (-66.7 %)" if machine == "busy" else "6.40 s -> 2.40 s (-62.5 %)"
    assert first == f"CPU {amounts}, almost all of it app.py:{line}"
    assert why.startswith("one run a side")
    assert why.endswith(": by how much is rough")
    assert other.startswith("more: allocated +3.0 % (")
    assert values(result.totals, "cpu")["verdict"] == "not_judged"
    (gate,) = judge(result, [parse_condition("cpu>5%")])
    assert gate.outcome.value == "undecided" or gate.high < 0
    slower = comparison.diff([run("c", 200, 50_000_000)], [run("d", 600, 50_000_000)])
    assert slower.summary.sentence.startswith("CPU 2")
    assert "almost all of it app.py" in slower.summary.sentence
    # What a neighbour may have done is named, and no more.
    little = comparison.diff([run("e", 600, 50_000_000)], [run("f", 400, 51_500_000)])
    assert little.summary.sentence.startswith("more: allocated +3.0 %")
    assert "; not judged: one run a side" in little.summary.sentence


def test_a_report_of_one_run_a_side_says_once_why_there_are_no_verdicts(make: Make) -> None:
    """And a total that was measured, not sampled, has no interval: not one of no width."""
    runs = [make(name, {WORK: n}, allocated={WORK: n * 100_000}) for name, n in (("a", 600), ("b", 200))]
    result = comparison.diff(runs[:1], runs[1:])
    console = Console(width=100, file=StringIO())
    show(result, console)
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert "Lines by CPU   no verdicts: one run a side is too few" in text
    assert "0 compared" not in text
    assert "Functions by allocated" not in text
    assert not [line for line in text.split("\n") if "not judged" in line and "work(item)" in line]
    totals = {row.label: row for row in total_rows(result)}
    assert totals["peak memory"].change_interval == totals["peak memory"].interval == ""
    assert totals["CPU"].change_interval != ""
    peak, cpu = (document(result)["totals"][name] for name in ("memory.peak", "cpu"))
    assert [peak[name] for name in ("low", "high", "change_low", "change_high")] == [None] * 4
    assert peak["difference"] != 0
    assert cpu["low"] < cpu["high"]
    markdown = summary(result, most=4000)
    assert [line for line in markdown.split("\n") if "not judged" in line and "sentence:" not in line] == []
    assert "peak memory: " in markdown
    assert "()" not in markdown
    assert "live at peak" not in totals


def test_bytes_of_a_program_that_was_killed_are_not_judged_by_one_run(make: Make) -> None:
    whole = make("a", {WORK: 300}, allocated={WORK: 50_000_000})
    killed = make("b", {WORK: 300}, allocated={WORK: 20_000_000}, exit_status=-11)
    result = comparison.diff([whole], [killed])
    assert result.summary.verdict == "not_judged"
    assert "new: ended by SIGSEGV in 1 of 1 recording" in result.remarks
    assert not [remark for remark in result.remarks if remark.startswith("base: ")]


def test_an_upgraded_library_is_named(make: Make) -> None:
    old, new = (
        make(name, {WORK: 300}, parameters={"distributions": {"textkit": version, "numpy": "2.1"}})
        for name, version in (("a", "1.4"), ("b", "2.0"))
    )
    assert "not everything is equal: textkit 1.4 and 2.0" in diff([old], [new]).remarks


def test_waiting_more_than_computing_less_is_not_faster(make: Make) -> None:
    """0.8 s of CPU time less, 0.6 s of waiting more, of which three runs that vary say nothing for certain."""
    base = [make(f"a{n}", {WORK: 300 + n}) for n in range(3)]
    new = [make(f"b{n}", {WORK: 220 + n}, waits={CALL: waited}) for n, waited in enumerate((0.2, 0.6, 1.0))]
    result = diff(base, new)
    assert values(result.totals, "cpu")["verdict"] == "faster"
    assert values(result.totals, "main_wait")["verdict"] == "no evidence"
    assert result.summary.verdict == "mixed"
    assert "waiting in main +600 ms, most likely" in result.summary.sentence


def test_equal_memory_on_a_busy_machine_is_said_so(busy: Make) -> None:
    base = [busy(f"a{number}", 500 + number, 50_000_000 + number) for number in range(3)]
    new = [busy(f"b{number}", 700 + number, 50_000_002 - number) for number in range(3)]
    result = diff(base, new)
    assert result.summary.verdict == "not_judged"
    assert result.summary.sentence.endswith("to know (--anyway judges these); no difference found in memory")


def test_runs_of_different_programs_are_no_group(make: Make) -> None:
    a, b = make("a", {WORK: 10}), make("b", {WORK: 10}, source=SOURCE.replace("sorted", "list"))
    with pytest.raises(FormatError, match=r"app\.py is not the same in all of them"):
        diff([a, b], [a])
    assert len(diff([a, b], [a], anyway=True).base) == 2


def test_rows_with_next_to_nothing_are_not_counted_as_compared(make: Make) -> None:
    result = diff([make("a", {WORK: 100, SORT: 1})], [make("b", {WORK: 100, SORT: 2})])
    assert result.lines.compared("cpu") == 1
    assert values(result.lines, "cpu", line=SORT)["verdict"] == "no evidence"


def with_workers(path: Path, workers: int, **parameters: Any) -> Path:
    """A recording with a sample in each of several processes."""
    builder = Builder(path, parameters=parameters)
    stack = builder.stack((builder.code(builder.file("/srv/a/app.py")), 0))
    builder.cpu(stack)
    for number in range(workers):
        builder.cpu(stack, thread=builder.process(200 + number, 0, 9000)[1])
    return builder.write()


def test_recordings_of_several_processes(tmp_path: Path) -> None:
    two, also = (with_workers(tmp_path / f"{name}.tacho", 1, children=True) for name in ("two", "also"))
    three = with_workers(tmp_path / "three.tacho", 2, children=True)
    alone = with_workers(tmp_path / "alone.tacho", 0, children=False)
    assert not [note for note in diff([two], [also]).remarks if "processes" in note]
    result = diff([two], [three])
    assert "not everything is equal: number of recorded processes 2 and 3" in result.remarks
    assert values(result.totals, "cpu")["difference"] == pytest.approx(0.01)
    with pytest.raises(FormatError, match="whether child processes were recorded yes and no"):
        diff([two], [alone])

"""The command as a user and as a CI job types it: reports, JSON, conditions and exit statuses."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tachograph.analyzer.commands.diff import diff, spread_groups
from tachograph.analyzer.diff.comparison import diff as compare_recordings
from tachograph.analyzer.diff.gate import judge, parse_condition
from tachograph.analyzer.report_data.difference import DiffResult, Outcome
from tachograph.format import FormatError
from unit.analyzer.diff.conftest import CALL, SORT, SOURCE, WORK, Make, maker

pytestmark = pytest.mark.broad

EVIL = "evil\x1b[31m[bold]\r\u202e\x07"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """CPU grew by 100 % in one line and by 71 % in all."""
    make = maker(tmp_path_factory.mktemp("pair"))
    samples = {"old": {WORK: 500, SORT: 200}, "new": {WORK: 1000, SORT: 200}}
    return [make(name, counts, waits={CALL: 1}) for name, counts in samples.items()]


@pytest.fixture
def pair(written: list[Path], tmp_path: Path) -> list[str]:
    """Both, in the test's own folder."""
    return [str(shutil.copytree(path, tmp_path / path.name)) for path in written]


@pytest.fixture(scope="module")
def compared(written: list[Path]) -> DiffResult:
    """Their diff, for what is not about the command line."""
    return compare_recordings(written[:1], written[1:], spread=0.01, shares=False)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(diff, list(arguments))


@pytest.mark.parametrize(
    ("condition", "status", "outcome"),
    [
        ("cpu>5%", 1, Outcome.FAILED),
        ("cpu>50%", 1, Outcome.FAILED),
        ("cpu > 70 %", 0, Outcome.UNDECIDED),
        ("cpu>150%", 0, Outcome.PASSED),
        ("cpu>3s", 1, Outcome.FAILED),
        ("cpu>3000ms", 1, Outcome.FAILED),
        ("cpu>5s", 0, Outcome.UNDECIDED),
        ("cpu>8s", 0, Outcome.PASSED),
        ("wait>0.5s", 0, Outcome.PASSED),
        ("wall>20%", 0, Outcome.PASSED),
        ("function f cpu>5%", 1, Outcome.FAILED),
        ("function f total_cpu>5%", 1, Outcome.FAILED),
        ("file app.py cpu>5%", 1, Outcome.FAILED),
        ("file a/app.py cpu>1000%", 0, Outcome.PASSED),
        (f"line app.py:{WORK} cpu>50%", 1, Outcome.FAILED),
        (f"line app.py:{SORT} cpu>50%", 0, Outcome.PASSED),
        ("thread Main* cpu>5%", 1, Outcome.FAILED),
    ],
)
def test_conditions(compared: DiffResult, condition: str, status: int, outcome: Outcome) -> None:
    (judgement,) = judge(compared, [parse_condition(condition)])
    assert judgement.outcome is outcome
    assert status == int(outcome is Outcome.FAILED)


def test_outcomes_are_shown_and_decide_the_exit_status(pair: list[str]) -> None:
    conditions = [*("--fail-if", "cpu>5%"), *("--fail-if", "cpu > 70 %"), *("--fail-if", "cpu>150%")]
    result = invoke(*pair, "--spread", "1", *conditions)
    assert result.exit_code == 1, result.output
    for word, condition in (("FAILED", "cpu>5%"), ("not sure", "cpu > 70 %"), ("passed", "cpu>150%")):
        assert any(line.startswith(f" {word}") and condition in line for line in result.output.splitlines())


def test_one_failure_of_several_conditions_is_enough(pair: list[str]) -> None:
    assert invoke(*pair, "--spread", "1", "--fail-if", "wait>1s", "--fail-if", "cpu>5%").exit_code == 1
    assert invoke(*pair, "--spread", "1", "--fail-if", "wait>1s", "--fail-if", "cpu>900%").exit_code == 0


def test_a_condition_is_judged_by_its_interval_not_by_the_estimate(make: Make) -> None:
    """10 % more with 50 samples is no evidence, with 50 000 times the weight in five steady runs it is."""
    few = [str(make("a", {WORK: 50})), str(make("b", {WORK: 55}))]
    assert invoke(*few, "--spread", "1", "--fail-if", "cpu>1%").exit_code == 0
    base = [str(make(f"c{n}", {WORK: 1000 + n})) for n in range(3)]
    new = [str(make(f"d{n}", {WORK: 1100 + n})) for n in range(3)]
    assert invoke("--base", *base, "--new", *new, "--fail-if", "cpu>5%").exit_code == 1
    assert invoke("--base", *base, "--new", *new, "--fail-if", "cpu>9.9%").exit_code == 0


def test_no_change_passes(make: Make) -> None:
    same = [str(make("a", {WORK: 300, SORT: 100})), str(make("b", {WORK: 303, SORT: 98}))]
    assert invoke(*same, "--spread", "1", "--fail-if", "cpu>0%", "--fail-if", "function * cpu>0%").exit_code == 0


def test_memory_conditions(make: Make) -> None:
    old = str(make("a", {WORK: 10}, allocated={WORK: 50_000_000}))
    new = str(make("b", {WORK: 10}, allocated={WORK: 60_000_000}))
    assert invoke(old, new, "--spread", "1", "--fail-if", "memory.peak>10%").exit_code == 1
    assert invoke(old, new, "--spread", "1", "--fail-if", "memory.peak>5MB").exit_code == 1
    assert invoke(old, new, "--spread", "1", "--fail-if", "memory.peak>20MiB").exit_code == 0


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("cpu", "is not a condition"),
        ("cpu<5%", "is not a condition"),
        ("cpu>", "is not a condition"),
        ("cpu>5", "cpu needs an amount in %, s, ms"),
        ("cpu>5MB", "cpu needs an amount in %, s, ms"),
        ("memory.peak>1s", "memory.peak needs an amount in %, B, KB"),
        ("speed>5%", "there is no metric 'speed' here; there are: wall, cpu"),
        ("line app.py cpu>5%", "write a line as FILE:NUMBER"),
        ("function nobody cpu>5%", "no function of that name has time"),
        ("memory.peak>5%", "peak memory was not recorded on both sides"),
    ],
)
def test_bad_conditions_are_one_line(compared: DiffResult, condition: str, message: str) -> None:
    with pytest.raises(FormatError) as error:
        judge(compared, [parse_condition(condition)])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bad_condition_is_exit_status_2(pair: list[str]) -> None:
    for condition, message in (("cpu", "is not a condition"), ("function nobody cpu>5%", "no function of that name")):
        result = invoke(*pair, "--fail-if", condition)
        assert result.exit_code == 2
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_shares_have_no_seconds(pair: list[str]) -> None:
    assert invoke(*pair, "--shares", "--fail-if", "function f cpu>1s").exit_code == 2
    assert invoke(*pair, "--shares", "--fail-if", "function f cpu>90%").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old.tacho"], "a diff is of two recordings, not 1"),
        (["old.tacho", "new.tacho", "old.tacho"], "a diff is of two recordings, not 3"),
        (["--base", "old.tacho"], "groups need both sides"),
        (["new.tacho", "--base", "old.tacho"], "groups need both sides"),
        (["old.tacho", "none.tacho"], "none.tacho does not exist"),
        (["old.tacho", "new.tacho", "--metric", "speed"], "there is no such metric; there are: cpu"),
        (["old.tacho", "new.tacho", "--json", "no/out.json"], "cannot write no/out.json"),
        (["old.tacho", "new.tacho", "--scope", "nothing"], "no recorded file matches"),
    ],
)
def test_bad_input_is_one_line_and_status_2(pair: list[str], arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_arguments_it_is_the_two_newest(make: Make) -> None:
    for age, (name, count) in enumerate((("newest", 300), ("before", 100), ("oldest", 900))):
        os.utime(make(name, {WORK: count}), (1_000_000 - age, 1_000_000 - age))
    output = invoke("--spread", "1").output
    assert output.index("before.tacho") < output.index("newest.tacho")
    assert "oldest" not in output
    assert any("work(item)" in line and "+2.00 s" in line and "slower" in line for line in output.splitlines())


def test_recordings_of_any_name_are_found(make: Make) -> None:
    """As record --output may name them; and the end of a name may be left out, as for analyze."""
    Path(make("other", {WORK: 100})).rename("before")
    make("after", {WORK: 300})
    os.utime("before", (1_000_000, 1_000_000))
    for arguments in ((), ("before", "after"), ("--base", "before", "--new", "after")):
        output = invoke(*arguments, "--spread", "1").output
        assert output.index("before") < output.index("after.tacho")


def test_one_recording_is_not_enough(make: Make) -> None:
    assert "there is no recording" in invoke().stderr
    make("only", {WORK: 1})
    result = invoke()
    assert (result.exit_code, "there is only one" in result.stderr) == (2, True)


def test_groups_on_the_command_line() -> None:
    assert list(spread_groups(["--base", "a", "b", "--new", "c", "d", "--top", "3", "--base", "e"])) == [
        *("--base", "a", "--base", "b", "--new", "c", "--new", "d", "--top", "3", "--base", "e")
    ]


def test_report(pair: list[str]) -> None:
    lines = invoke(*pair, "--spread", "1").output.splitlines()
    total = next(line for line in lines if line.split()[:1] == ["CPU"])
    assert total.split()[:7] == ["CPU", "7.00", "s", "12.0", "s", "+71.4", "%"]
    assert total.endswith("slower")
    work = next(line for line in lines if "work(item)" in line)
    assert work.split()[:6] == ["5.00", "s", "10.0", "s", "+5.00", "s"]
    assert any("one recording a side" in line for line in lines)
    assert all(len(line) <= 120 for line in lines)


def test_report_of_an_edited_program(make: Make) -> None:
    new = SOURCE.replace("import x\n", "import x\nimport y\n").replace("work(item)", "work(item, 1)")
    invoked = invoke(str(make("old", {WORK: 500})), str(make("new", {WORK + 1: 700}, source=new)))
    (line,) = [line for line in invoked.output.splitlines() if "work(item, 1)" in line]
    assert f"~    {WORK + 1}" in line
    assert f"(was line {WORK})" in line


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_report_keeps_to_the_width(pair: list[str], columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = invoke(*pair, "--fail-if", "cpu>900%")
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= int(columns)


def test_json(pair: list[str], here: Path) -> None:
    result = invoke(*pair, "--spread", "1", "--json", "-", "--fail-if", "cpu>5%")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert "failed: cpu>5%: +71.4 %" in result.stderr
    line = next(each for each in found["lines"] if each["line"] == WORK)
    assert (line["file"], line["status"], line["base_line"]) == ("/srv/a/app.py", "same", WORK)
    cpu = line["metrics"]["cpu"]
    assert (cpu["base"], cpu["new"], cpu["difference"], cpu["verdict"]) == (5.0, 10.0, 5.0, "slower")
    assert cpu["low"] < 5 < cpu["high"]
    assert found["verdict"] == "slower"
    assert found["sentence"].startswith("slower: CPU +71.4 % (")
    assert found["sentence"].endswith(f"because of app.py:{WORK}")
    assert found["totals"]["cpu"]["change"] == pytest.approx(5 / 7)
    assert found["gate"][0]["outcome"] == "failed"
    assert found["question"]["spread"] == 0.01
    (family,) = [each for each in found["compared"] if (each["table"], each["metric"]) == ("lines", "cpu")]
    assert (family["compared"], family["verdicts"]) == (2, 1)
    # All rows and metrics of all tables are asked together; the totals are apart.
    alphas = {each["table"]: each["alpha"] for each in found["compared"]}
    assert alphas["lines"] == alphas["functions"] == alphas["threads"] == alphas["calls"] != alphas["totals"]
    asked = sum(each["compared"] for each in found["compared"] if each["table"] != "totals")
    assert alphas["lines"] * asked / 0.01 == pytest.approx(round(alphas["lines"] * asked / 0.01))
    assert 0.01 / asked < alphas["lines"] < 0.01
    assert invoke(*pair, "--spread", "1", "--json", "out.json").output == ""
    assert json.loads((here / "out.json").read_text())["lines"] == found["lines"]


def test_pages_and_figures(pair: list[str], here: Path) -> None:
    result = invoke(*pair, "--spread", "1", "--html", "diff.html", "--figures", "figures", "--fail-if", "cpu>5%")
    assert result.exit_code == 1
    assert (result.stdout, "failed: cpu>5%" in result.stderr) == ("", True)
    assert (here / "diff.html").read_text("utf-8").startswith("<!doctype html>")
    assert list((here / "figures").glob("*.svg"))


def test_documented_names(pair: list[str]) -> None:
    """docs/reference/diff-json.md lists every name of the document, and no other."""
    found = json.loads(invoke(*pair, "--json", "-", "--fail-if", "cpu>5%").stdout)
    text = (Path(__file__).parents[4] / "docs" / "reference" / "diff-json.md").read_text("utf-8")
    names_of_rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    documented = {name for cell in names_of_rows for name in re.findall(r"`(\w+)`", cell)}
    names = set(found) | set(found["lines"][0]["metrics"]["cpu"]) | {"shares", "spread", "state", "nothing_lost"}
    for name in ("tachograph", "compared", "files", "functions", "lines", "threads", "gate"):
        for entry in found[name] if isinstance(found[name], list) else [found[name]]:
            names |= set(entry)
    # Of a recording and of a question the rest is as in json.md.
    assert documented == names


def test_hostile_names_and_sources(make: Make) -> None:
    old = make("old", {WORK: 100}, source=SOURCE.replace("work(item)", f"work({EVIL!s})"), path=f"/srv/{EVIL}.py")
    new = make("new", {WORK: 300}, source=SOURCE.replace("work(item)", f"work({EVIL!s}, 1)"), path=f"/srv/{EVIL}.py")
    for result in (invoke(str(old), str(new)), invoke(str(old), str(new), "--json", "-")):
        assert result.exit_code == 0, result.output
        assert not set("\x1b\r\x07\x00\u202e") & set(result.output)


def test_help_has_examples() -> None:
    assert "Examples:" in invoke("--help").output


def test_parse_condition_refuses_hostile_text() -> None:
    with pytest.raises(FormatError) as error:
        parse_condition(f"{EVIL}>5%")
    assert "\x1b" not in str(error.value)


def test_one_run_a_side_tells_nothing_about_the_program(pair: list[str], here: Path) -> None:
    found = json.loads(invoke(*pair, "--json", "-", "--html", "diff.html").stdout)
    assert found["verdict"] == "not_judged"
    assert found["sentence"].startswith(
        "not judged: one run a side differs by CPU +71.4 %; repeat to know: tachograph diff --base"
    )
    verdicts = {
        metric["verdict"]
        for table in ("files", "functions", "lines", "threads")
        for row in found[table]
        for metric in row["metrics"].values()
    }
    assert verdicts == {"not_judged"}
    assert "one run a side differs by" in (here / "diff.html").read_text("utf-8")
    assert "repeat to know" in invoke(*pair).output
    assert {row["p"] for row in found["totals"].values()} == {None}


def test_no_condition_can_fail_with_one_run_a_side(pair: list[str]) -> None:
    """Nothing is assumed of how much runs differ: the condition is undecided, and says what to do."""
    result = invoke(*pair, "--fail-if", "cpu>5%", "--fail-if", "cpu>900%", "--fail-if", "function f cpu>5%")
    assert result.exit_code == 0
    told = [line for line in result.output.splitlines() if line.startswith(" not sure")]
    assert len(told) == 3
    assert all("more runs would tell" in line for line in told)


def test_a_condition_follows_a_renamed_function(make: Make) -> None:
    renamed = SOURCE.replace("def f(", "def work_of(")
    assert renamed != SOURCE
    old, new = str(make("old", {WORK: 500})), str(make("new", {WORK: 1000}, source=renamed, function="work_of"))
    for name in ("f", "work_of"):
        found = invoke(old, new, "--spread", "1", "--fail-if", f"function {name} cpu>5%")
        assert found.exit_code == 1, found.output


def test_a_recording_that_is_given_three_times_is_one_run(make: Make) -> None:
    old, new = str(make("old", {WORK: 500, SORT: 200})), str(make("new", {WORK: 200, SORT: 200}))
    shutil.copytree(new, "copy.tacho")
    found = invoke("--base", old, old, old, "--new", new, new, "copy.tacho", "--json", "-")
    document = json.loads(found.stdout)
    assert document["verdict"] == "not_judged"
    assert (len(document["base"]), len(document["new"])) == (1, 1)
    assert "4 recordings given more than once: each counts once" in document["remarks"]


def test_several_runs_answer_in_a_sentence(make: Make) -> None:
    old = [str(make(f"old{n}", {WORK: 500 + n, SORT: 200})) for n in range(3)]
    new = [str(make(f"new{n}", {WORK: 200 + n, SORT: 200})) for n in range(3)]
    again = [str(make(f"again{n}", {WORK: 501 - n, SORT: 200})) for n in range(3)]

    def answer(base: list[str], other: list[str], *more: str) -> tuple[str, str]:
        found = json.loads(invoke("--base", *base, "--new", *other, "--json", "-", *more).stdout)
        return found["verdict"], found["sentence"]

    verdict, sentence = answer(old, new)
    assert verdict == "faster"
    assert sentence.startswith("faster: CPU -42.")
    assert sentence.endswith(f"because of app.py:{WORK}")
    verdict, sentence = answer(old, again)
    assert (verdict, sentence.startswith("no difference found: CPU ")) == ("same", True)
    assert answer(old, new, "--smallest", "50")[0] == "same"

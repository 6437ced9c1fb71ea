"""``tachograph compare`` with real programs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from integration import support
from tachograph.cli import main

pytestmark = pytest.mark.native

PROGRAM = """
def price(count):
    total = 0
    for number in range(count):
        total += number % 7
    return total


def parse(count):
    return sum(len(str(number)) for number in range(count))


print("a line that nobody reads")
parse(30_000)
price(PRICED)
kept = [bytes(1000) for _ in range(KEPT)]
"""


def write(path: Path, priced: int = 200_000, kept: int = 5_000) -> Path:
    path.write_text(PROGRAM.replace("PRICED", str(priced)).replace("KEPT", str(kept)))
    return path


def compare(cwd: Path, *words: str, timeout: float = 300) -> tuple[int, str, str]:
    """Run the command; its exit status and both outputs."""
    done = support.tachograph("compare", *words, cwd=cwd, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a function that takes five times as long."""
    folder = tmp_path_factory.mktemp("slower")
    # Long enough for its time in a run to be known from more than a few samples.
    write(folder / "old.py", priced=2_000_000)
    write(folder / "new.py", priced=10_000_000)
    status, shown, errors = compare(folder, "--json", "answer.json", "python old.py", "python new.py")
    assert status == 1, errors
    (folder / "shown.txt").write_text(shown)
    return folder


def test_a_slower_program_is_found_with_its_function(slower: Path) -> None:
    answer = json.loads((slower / "answer.json").read_text())
    assert answer["verdict"] == "slower"
    assert answer["place"]["function"] == "price"
    assert answer["place"]["file"].endswith("new.py")
    assert answer["place"]["change"] == pytest.approx(4.0, abs=1.5)
    assert answer["ended"] == "decided"
    assert answer["effect"]["low"] <= answer["effect"]["change"] <= answer["effect"]["high"]
    assert set(answer["could_have_seen"]) >= {"cpu", "wall"}
    assert answer["decided_by"] in {"whole", "function"}
    assert answer["place"]["metric"] == "cpu"
    assert answer["place"].keys() >= {"against_rest", "by_rest", "changed_line", "could_have_seen"}
    shown = (slower / "shown.txt").read_text()
    # On a busy machine it may be the wall clock that decides first.
    assert re.match(r"slower: (CPU|wall time) \+", shown)
    assert "because of price (new.py:2)" in shown
    assert "tachograph diff compare-001" in shown


def test_the_recordings_are_kept_and_diff_opens_them(slower: Path) -> None:
    manifest = json.loads((slower / "compare-001" / "experiment.json").read_text())
    names = [name for side in manifest["sides"].values() for name in side["recordings"]]
    assert all((slower / "compare-001" / name / "manifest.json").is_file() for name in names)
    assert not any(name.startswith("warmup") for name in names)
    done = support.tachograph("diff", "compare-001", "--json", "-", cwd=slower)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert len(document["base"]) == len(document["new"]) == len(names) // 2


@pytest.mark.slow
def test_bytes_alone_decide(tmp_path: Path) -> None:
    write(tmp_path / "old.py")
    write(tmp_path / "new.py", kept=5_500)
    words = ["--json", "-", "--warmup", "0", "--effect", "900%", "python old.py", "python new.py"]
    status, shown, errors = compare(tmp_path, *words)
    answer = json.loads(shown)
    (allocated,) = [each for each in answer["effects"] if each["metric"] == "memory.allocated"]
    assert (status, allocated["verdict"]) == (1, "more"), errors
    assert allocated["high"] - allocated["low"] < 0.01
    assert answer["place"]["metric"] == "memory.allocated"
    assert answer["place"]["new_bytes"] > answer["place"]["base_bytes"]


def test_two_revisions_of_a_repository(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch", "main")
    write(tmp_path / "bench.py")
    git("add", "bench.py")
    git("commit", "--quiet", "-m", "fast")
    write(tmp_path / "bench.py", priced=200_001)
    # One pair is enough: which text each side ran is in its recording.
    words = ["--base", "HEAD", "--new", ".", "--output", "kept", "--warmup", "0", "--time", "1ms", "--json", "-"]
    status, shown, errors = compare(tmp_path, *words, "--", "python", "bench.py")
    assert status == 0, errors
    answer = json.loads(shown)
    assert (answer["pairs"], answer["verdict"], answer["ended"]) == (1, "not_judged", "time")
    for side, priced in (("base", "200000"), ("new", "200001")):
        (name,) = answer["sides"][side]["recordings"]
        texts = [row["source"] or "" for row in support.rows(tmp_path / "kept" / name, "files")]
        assert sum(f"price({priced})" in text for text in texts) == 1
    assert [answer["sides"][side]["revision"] for side in ("base", "new")] == ["HEAD", "."]
    listed = subprocess.run(["git", "worktree", "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["python old.py"], "a comparison is of two commands, not 1: put each in quotes"),
        (["python 'old.py", "python old.py"], "cannot be split into words"),
        (["", "python old.py"], "the command of the base side is empty"),
        (["--base", "main", "python old.py"], "revisions need both sides"),
        (["--base", "nothing", "--new", ".", "--", "python", "old.py"], "git rev-parse: fatal: not a git repository"),
        (["--effect", "much", "python old.py", "python old.py"], "'much' is not a share such as 3%"),
        (["--time", "soon", "python old.py", "python old.py"], "'soon' is not a time such as 90s"),
        (["python old.py", "python bad.py"], "the new side, 'python bad.py', ended with exit status 3: too bad"),
        (["python old.py", "no-such-program"], "no-such-program"),
        (["--output", ".", "python old.py", "python old.py"], ". exists: name another folder with --output"),
        (["--time", "0.1s", "python old.py", "python old.py"], "no pair of runs was complete in 0.1 s"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, words: list[str], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "old.py", priced=10, kept=10)
    (tmp_path / "bad.py").write_text("import sys\nprint('too bad', file=sys.stderr)\nsys.exit(3)\n")
    if words[0].startswith("python") and words[1:] and "old" not in words[1]:  # the programs run
        status, shown, errors = compare(tmp_path, *words)
    else:
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(main, ["compare", *words], prog_name="tachograph")
        status, shown, errors = done.exit_code, done.stdout, done.stderr
    assert (status, shown) == (2, "")
    assert line in errors
    assert errors.startswith("tachograph: ")
    assert errors.count("\n") == 1


def test_ctrl_c_ends_with_what_is_known(tmp_path: Path) -> None:
    write(tmp_path / "old.py", priced=10, kept=10)
    command = [sys.executable, "-m", "tachograph", "compare", "--warmup", "0", "--effect", "0.01%"]
    command += ["--json", "answer.json", "python old.py", "python old.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        manifest, deadline = tmp_path / "compare-001" / "experiment.json", time.monotonic() + 60
        while not manifest.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 0
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert answer["ended"] == "interrupted"
    assert answer["pairs"] >= 1
    assert not subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, check=False).stdout


PATIENT = """
import pathlib, signal, time

signal.signal(signal.SIGINT, lambda number, frame: open("met", "a").write("x"))
sum(range(3_000_000))
open("runs", "a").write("x")
met, runs = map(pathlib.Path, ("met", "runs"))
while runs.stat().st_size > 2 and (not met.exists() or met.stat().st_size < 2):
    time.sleep(0.01)
"""


def test_a_second_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    """The program takes the first one for itself; the second comes while its end is waited for."""
    (tmp_path / "old.py").write_text(PATIENT)
    command = [sys.executable, "-m", "tachograph", "compare", "--warmup", "0", "--effect", "0.01%"]
    command += ["--json", "answer.json", "python old.py", "python old.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        # The third run, and the first signal, are there when the files say so.
        for name, size in (("runs", 3), ("met", 1)):
            file, deadline = tmp_path / name, time.monotonic() + 60
            while not (file.exists() and file.stat().st_size >= size) and time.monotonic() < deadline:
                time.sleep(0.02)
            if name == "met":
                time.sleep(0.4)  # for a quarter of a second subprocess itself takes no notice of another one
            os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == 0
    assert not subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, check=False).stdout
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert (answer["ended"], answer["pairs"]) == ("interrupted", 1)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"sides": 3}', '{"sides": {"base": {"recordings": ["../x"]}, "new": {"recordings": ["y"]}}}']
)
def test_a_damaged_experiment_is_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "compare-001").mkdir()
    (tmp_path / "compare-001" / "experiment.json").write_text(content)
    done = support.tachograph("diff", "compare-001", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "tachograph: compare-001/experiment.json is not the manifest of an experiment\n"

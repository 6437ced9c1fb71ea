"""``pytest --tachograph``: a span per phase, the tests that cost most with their lines, limits, workers."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

import tachograph.analyzer
from integration import support

pytestmark = pytest.mark.native

SUITE = """
import threading
import time

import pytest

KEPT = []


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(5000))


@pytest.fixture
def slow_setup():
    time.sleep(0.05)
    yield
    burn(0.05)


@pytest.mark.limit_cpu("50 ms")
def test_burns():
    burn(0.4)


@pytest.mark.limit_cpu(60)
@pytest.mark.limit_memory("1 GiB")
@pytest.mark.limit_copies("1 GB")
@pytest.mark.no_leaks
def test_is_modest(slow_setup):
    pass


@pytest.mark.limit_memory("20 MB")
def test_is_hungry():
    data = b"x" * 60_000_000
    assert data


@pytest.mark.no_leaks(above="1 MB")
def test_keeps():
    KEPT.append(bytearray(70_000_000))


@pytest.mark.no_leaks
def test_gives_back():
    assert bytearray(80_000_000)


@pytest.mark.limit_copies(size="20 MB")
def test_copies():
    data = bytearray(16_000_000)
    for _ in range(8):
        copy = bytes(data)


def test_has_a_thread():
    thread = threading.Thread(target=burn, args=(0.3,))
    thread.start()
    thread.join()


@pytest.mark.parametrize("text", ["x" * 300])
def test_long(text):
    pass
"""
OVER = {
    "test_burns": "limit_cpu allows 50 ms",
    "test_is_hungry": "limit_memory allows 20 MB",
    "test_copies": "limit_copies allows 20 MB",
    "test_keeps": "no_leaks allows 1 MB",
}
LINES = {
    "test_burns": "in burn: ",
    "test_is_hungry": 'in test_is_hungry: data = b"x" * 60_000_000',
    "test_copies": "in test_copies: copy = bytes(data)",
    "test_keeps": "in test_keeps: KEPT.append(bytearray(70_000_000))",
}


@dataclass(frozen=True)
class Run:
    """A recorded run of SUITE."""

    folder: Path
    outcome: support.Outcome

    @property
    def over(self) -> dict[str, tuple[str, str]]:
        """By test that is over its limit, what is said, and its line."""
        found = re.findall(r"  FAILED test_suite\.py::(\w+): (.*)\n +(.*)", self.outcome.stdout)
        return {test: (said, line) for test, said, line in found}


def pytest_run(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> support.Outcome:
    """``python -m pytest`` in a folder."""
    environment = {**support.environment(), **(env or {})}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return support.run(command, folder, env=environment, timeout=120)


def recorded_run(folder: Path, *arguments: str) -> Run:
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    written = ("--tachograph-markdown=costs.md", "--junitxml=junit.xml")
    return Run(folder, pytest_run(folder, "--tachograph=run.tacho", *written, *arguments))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded_run(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def workers(open_folder_of_module: Path) -> Run:
    # Workers may end before they are looked at.
    return recorded_run(open_folder_of_module, "-n", "2")


@pytest.fixture(params=["run", "workers"])
def either(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


def test_limits_fail_the_run_with_their_lines(either: Run) -> None:
    assert either.outcome.status == 1, either.outcome
    assert "8 passed" in either.outcome.stdout
    assert either.over.keys() == OVER.keys(), either.outcome.stdout
    for test, (said, line) in either.over.items():
        assert said.startswith(OVER[test])
        assert LINES[test] in line


def test_the_slowest_and_the_hungriest_are_shown_with_their_lines(either: Run) -> None:
    slowest, hungriest = either.outcome.stdout.split("hungriest tests")
    slowest = slowest.split("slowest tests")[1]
    assert "test_suite.py::test_burns" in slowest
    assert " in burn: " in slowest
    assert "60 MB  test_suite.py::test_is_hungry" in hungriest
    assert 'in test_is_hungry: data = b"x" * 60_000_000' in hungriest


def test_every_phase_of_every_test_is_a_row(either: Run) -> None:
    with tachograph.analyzer.open(either.folder / "run.tacho") as recording:
        tests = recording.tests()
    assert set(tests["phase"]) == {"setup", "call", "teardown"}
    assert len(tests) == 3 * 8
    assert (tests["count"] == 1).all()
    assert max(map(len, tests["test"])) <= 200
    rows = {(row.test.partition("::")[2][:20], row.phase): row for row in tests.itertuples()}
    modest = {phase: rows["test_is_modest", phase] for phase in ("setup", "call", "teardown")}
    assert modest["setup"].duration_s >= 0.05 > modest["setup"].cpu_s
    assert modest["teardown"].cpu_s >= 0.05
    assert rows["test_has_a_thread", "call"].cpu_s >= 0.3
    assert rows["test_burns", "call"].cpu_s >= 0.4
    assert rows["test_burns", "call"].limit_cpu_s == 0.05
    assert rows["test_is_modest", "call"].limit_memory_bytes == 1 << 30
    assert rows["test_gives_back", "call"].peak_bytes_low >= 80_000_000 > rows["test_gives_back", "call"].kept_bytes


def test_the_junit_file_has_costs_and_failures(either: Run) -> None:
    suite = ET.parse(either.folder / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "4", "0")
    cases = {str(case.get("name")): case for case in suite.iter("testcase")}
    failed = {name: str(failure.get("message")) for name, case in cases.items() for failure in case.iter("failure")}
    assert failed.keys() == OVER.keys()
    assert all(failed[test].startswith(said) for test, said in OVER.items())
    costs = {each.get("name"): str(each.get("value")) for each in cases["test_burns"].iter("property")}
    assert costs["tachograph.test"] == "test_suite.py::test_burns"
    assert float(costs["tachograph.cpu_s"]) >= 0.4


def test_the_markdown_has_the_limits_and_the_hungriest(either: Run) -> None:
    said = (either.folder / "costs.md").read_text(encoding="utf-8")
    assert "# tachograph: tests\n" in said
    assert "test_suite.py::test_burns: limit_cpu allows 50 ms" in said
    assert '60 MB: test_suite.py::test_is_hungry (call) | test_suite.py:38 in test_is_hungry: data = b"x"' in said


def test_one_test_can_be_analyzed_alone(run: Run) -> None:
    found = support.analyze(Path("run.tacho"), "--span", "call[test=*test_burns]", cwd=run.folder)
    assert found["functions"][0]["function"] == "burn"


def test_workers_are_processes_of_the_recording(workers: Run) -> None:
    spans = support.rows(workers.folder / "run.tacho", "spans")
    threads = support.rows(workers.folder / "run.tacho", "threads")
    tested = {threads[row["thread"]]["process"] for row in spans if "test" in json.loads(row["fields"] or "{}")}
    assert len(tested) == 2


def test_a_run_within_its_limits_passes_and_one_that_fails_stays_so(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import pytest\n\n\n@pytest.mark.limit_cpu(60)\ndef test_one():\n    pass\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_two.py").write_text("def test_two():\n    assert 1 == 2\n")
    done = pytest_run(tmp_path, "--tachograph", "test_one.py")
    assert done.status == 0, done
    assert "1 passed" in done.stdout
    assert (tmp_path / "pytest-001.tacho" / "manifest.json").is_file()
    done = pytest_run(tmp_path, "--tachograph", "tests", "--tachograph-options=--cpu-only --quiet")
    assert done.status == 1, done
    assert "1 failed" in done.stdout
    assert done.stderr == ""
    manifest = json.loads((tmp_path / "pytest-002.tacho" / "manifest.json").read_text())
    assert manifest["parameters"]["memory"] is False


def test_a_mark_that_is_written_wrongly_fails_its_test_in_one_line(tmp_path: Path) -> None:
    text = "import pytest\n\n\n@pytest.mark.limit_memory('24 apples')\ndef test_one():\n    pass\n"
    (tmp_path / "test_one.py").write_text(text)
    assert pytest_run(tmp_path).status == 0
    done = pytest_run(tmp_path, "--tachograph")
    assert done.status == 1
    assert "1 error" in done.stdout  # at the setup alone
    assert "KeyError" not in done.stdout
    assert "another exception" not in done.stdout
    assert (
        "mark limit_memory: '24 apples' is not a number of bytes, or a text such as '24 MB' or '24 MiB'" in done.stdout
    )


def test_what_cannot_be_recorded_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "there.tacho").mkdir()
    (tmp_path / "there.tacho" / "mine").touch()
    done = pytest_run(tmp_path, "--tachograph=there.tacho")
    assert done.stdout == ""
    support.one_line(done, "there.tacho exists")


def test_a_base_that_is_not_there_is_refused_before_the_tests_run(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "empty").mkdir()
    for base in ("nothing.tacho", "empty"):
        done = pytest_run(tmp_path, "--tachograph", f"--tachograph-compare={base}")
        assert done.status == 4
        assert "--tachograph-compare: there is no recording" in done.stderr
    assert not list(tmp_path.glob("*.tacho"))


def test_tests_that_were_not_recorded_fail_for_no_limit_was_judged(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    done = pytest_run(tmp_path, "--tachograph=run.tacho", "--tachograph-options=--exclude *")
    assert "1 passed" in done.stdout
    assert "was not recorded" in done.stderr
    assert done.status == 1


def test_a_pytest_that_a_program_started_is_refused(tmp_path: Path) -> None:
    program = "import pytest, sys; sys.exit(pytest.main(['-q', '--tachograph']))"
    done = support.run([sys.executable, "-c", program], tmp_path)
    assert done.status == 4
    assert "record that program ('tachograph record PROGRAM')" in done.stderr


def test_in_a_recorded_program_the_tests_are_marked_in_its_recording(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    pass\n")
    done = support.record(["-m", "pytest", "-q", "--tachograph"], tmp_path)
    assert done.status == 0, done
    assert [path.name for path in tmp_path.glob("*.tacho")] == ["run.tacho"]
    names = [row["name"] for row in support.rows(tmp_path / "run.tacho", "spans")]
    assert names == ["setup", "call", "teardown"]

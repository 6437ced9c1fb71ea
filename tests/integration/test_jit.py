"""CPython's own JIT compiler: what it makes of Python code is not native code. Needs 3.14 or later, built with it."""

import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

LOOP = """
import sys, time
def work(count):
    total = 0
    for number in range(count):
        total = (total + number * number) % 1000003
    return total
end = time.process_time() + 2
while time.process_time() < end:
    work(200_000)
print(sys._jit.is_enabled())
"""


@pytest.fixture
def with_jit() -> dict[str, str]:
    jit = getattr(sys, "_jit", None)
    if jit is None or not jit.is_available():
        pytest.skip("this CPython was built without its JIT compiler")
    return support.environment(PYTHON_JIT="1")


def test_its_code_is_not_native(tmp_path: Path, with_jit: dict[str, str]) -> None:
    recorded = support.record(["-c", LOOP], tmp_path, "--interval", "5", env=with_jit)
    assert recorded == support.Outcome(0, "True\n", "")
    modules = support.rows(tmp_path / "run.tacho", "modules")
    frames = support.rows(tmp_path / "run.tacho", "native_frames")
    fileless = {row["module"] for row in modules if row["path"] == "[anonymous]"}
    assert any(frame["module"] in fileless for frame in frames), "nothing ran in code that the JIT compiler made"
    assert [row["jit"] for row in support.rows(tmp_path / "run.tacho", "processes")] == [True]
    totals = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]
    assert totals["native_s"] < 0.05 * totals["cpu_s"]
    assert totals["python_s"] > 0.8 * totals["cpu_s"]


def test_whether_it_is_on_is_recorded(tmp_path: Path) -> None:
    support.record(["-c", "sum(range(10**6))"], tmp_path)
    (process,) = support.rows(tmp_path / "run.tacho", "processes")
    expected = False if sys.version_info < (3, 13) else None if sys.version_info < (3, 14) else process["jit"]
    assert process["jit"] is expected
    assert expected is None or process["jit"] is not None

"""What the sampling handler does to the thread that it interrupts: nothing that the program could notice."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

NATIVE = Path(__file__).parent / "native"
BUSY = """
import time
end = time.process_time() + 0.6
while time.process_time() < end: sum(range(1000))
"""


@pytest.mark.skipif(
    sys.version_info < (3, 12) or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="this interpreter keeps no thread state in a shared library's thread-local variables",
)
def test_no_thread_local_variable_is_looked_up(tmp_path: Path) -> None:
    """The loader's function for them allocates and locks: it is not called in the handler, and the stacks are there."""
    library = support.compile_library(NATIVE / "tls_calls.c", tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    environment = support.environment(LD_PRELOAD=str(library))
    done = subprocess.run([sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "called 0\n"
    recorded = support.record(["-c", BUSY], tmp_path, "--interval", "1", env=environment)
    assert recorded.status == 0
    assert "called 0\n" in recorded.stderr
    assert all(line in {"called 0", "never called 0"} for line in recorded.stderr.splitlines()), recorded.stderr
    samples = support.rows(tmp_path / "run.tacho", "cpu")
    assert len(samples) > 100
    assert sum(row["stack"] is not None for row in samples) > 0.9 * len(samples)
    assert sum(row["gil"] is True for row in samples) > 0.9 * len(samples)

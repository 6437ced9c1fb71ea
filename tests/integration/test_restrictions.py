"""The restrictions of containers, one by one; ``make soak ARGS='--only containers'`` tries more programs."""

import sys
from pathlib import Path

import pytest

from integration import restrictions, support
from support.vectors import VECTORS

pytestmark = pytest.mark.native


QUICK = ("docker", "read-only-root", "address-space", "open-files")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in restrictions.NAMES]
)
def test_output_and_end_are_as_bare(tmp_path: Path, name: str) -> None:
    try:
        restrictions.compare(tmp_path, name)
    except restrictions.ImpossibleError as error:
        pytest.skip(str(error))


TAKES_ALL = """
print("begins", flush=True)
held = []
while True: held.append(b"x" * (1 << 20))
"""


def test_the_kernel_ends_what_takes_too_much_memory(tmp_path: Path) -> None:
    """In a control group, of which the recording command is a part: it stays, and the recording is whole.

    Before the program's memory has come back, the kernel may end the recording command as well (once in fifteen runs).
    """
    recording = None
    for number in range(3):
        (folder := tmp_path / str(number)).mkdir()
        try:
            recording = restrictions.compare(folder, "memory-group", ["-c", TAKES_ALL])
        except restrictions.ImpossibleError as error:
            pytest.skip(str(error))
        except AssertionError as error:
            if str(error).splitlines()[0] != "memory-group: recording":
                raise
            continue
        break
    assert recording is not None, "the recording command was ended three times"
    (program,) = support.rows(recording, "processes")
    assert program["exit_status"] == -9
    # The last row, of what the program had counted when it was killed, has no peak.
    peaks = [row["peak_bytes"] for row in support.rows(recording, "memory") if row["peak_bytes"] is not None]
    assert max(peaks) > 64 << 20


def test_figures_without_a_folder_for_temporary_files(tmp_path: Path) -> None:
    """matplotlib needs one before it draws: one line says so, as the recording's own folder may be all there is."""
    recording = VECTORS / "attribution.tacho"
    analyze = [sys.executable, "-m", "tachograph", "analyze", str(recording), "--figures", str(tmp_path / "figures")]
    command = ["env", "-u", "TMPDIR", "-u", "MPLCONFIGDIR", "HOME=/", "sh", "-c", 'cd / && exec "$@"', "sh", *analyze]
    done = support.run([sys.executable, str(restrictions.RESTRICTED), "read-only-root", *command], tmp_path)
    if done.status == restrictions.IMPOSSIBLE:
        pytest.skip(done.stderr.strip())
    assert done.status == 2, done
    assert "set MPLCONFIGDIR" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr

"""Programs under each restriction of containers, bare and recorded."""

from collections.abc import Sequence
from pathlib import Path

from integration import restrictions, support

CONDITIONS = ("closed_files", "interpreters", "signalfd", "sigwait", "wakeup_fd")
PROGRAMS = {
    "contained": restrictions.CONTAINED,
    **{name: support.PROGRAMS / "conditions" / f"{name}.py" for name in CONDITIONS},
}
"""They print the same in every run, whatever they may not do."""


def run(folder: Path, names: Sequence[str] = restrictions.NAMES) -> tuple[int, list[str], list[str]]:
    """How many pairs came out the same; what differed; which restrictions this machine does not allow."""
    same, different, impossible = 0, [], []
    for restriction in names:
        for name, target in PROGRAMS.items():
            place = folder / f"{restriction}-{name}"
            place.mkdir()
            try:
                recording = restrictions.compare(place, restriction, [target])
                report = support.tachograph("analyze", recording, cwd=place)
                assert report.returncode == 0, report.stderr
                same += 1
            except restrictions.ImpossibleError as error:
                impossible.append(f"{restriction}: {error}")
                break
            except AssertionError as error:
                different.append(f"{name} under {restriction}: {str(error)[:600]}")
            finally:
                support.discard(place)
    return same, different, impossible

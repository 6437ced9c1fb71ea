"""Results on disk: a row is appended as soon as it is measured, so an interrupted benchmark can go on where it was."""

import csv
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.errors import BenchmarkError

ENDED = "ended"
NEVER_ENDED = "over the bound"


@dataclass(frozen=True)
class Row:
    """One run of one program in one arm. Times in seconds; an unknown figure is None (an empty field)."""

    round: int
    program: str
    arm: str
    loops: int
    in_program_s: float | None
    in_program_cpu_s: float | None
    whole_s: float
    whole_cpu_s: float
    peak_rss_bytes: int
    """Largest resident set of any process of the command."""
    program_peak_bytes: int | None
    """Largest resident set of the program's own process when its work was done."""
    recording_bytes: int | None
    """Size of what the profiler wrote, source texts left out where they are apart."""
    after_program_s: float | None
    """From the end of the program's own work until the command was gone."""
    start_up_s: float | None
    """From before the command was started until the program's first line ran."""
    outcome: str = ENDED
    """`ENDED`, `NEVER_ENDED`, or how the command failed."""

    @property
    def whole(self) -> bool:
        """Whether the command ended well."""
        return self.outcome == ENDED

    @property
    def key(self) -> tuple[int, str, str]:
        """What makes a row: it is measured once."""
        return self.round, self.program, self.arm


_COLUMNS = [field.name for field in fields(Row)]


class Store:
    """`rows.csv` and `setup.json` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows = folder / "rows.csv"
        self._setup = folder / "setup.json"
        folder.mkdir(parents=True, exist_ok=True)

    def agree(self, setup: dict[str, object]) -> None:
        """Notes what is measured, or makes sure that it is what the rows already there were measured with."""
        text = json.dumps(setup | {"columns": _COLUMNS}, indent=2) + "\n"
        if self._setup.exists():
            if self._setup.read_text(encoding="utf-8") != text:
                raise BenchmarkError(
                    f"{self._setup.parent} holds results of another setup (see {self._setup.name}): "
                    "choose another --results, or --fresh to start over"
                )
        else:
            self._setup.write_text(text, encoding="utf-8")

    def clear(self) -> None:
        """Forgets everything."""
        self._rows.unlink(missing_ok=True)
        self._setup.unlink(missing_ok=True)

    def rows(self) -> list[Row]:
        """All rows so far."""
        if not self._rows.exists():
            return []
        with self._rows.open(newline="", encoding="utf-8") as file:
            return [_row(record) for record in csv.DictReader(file)]

    def append(self, row: Row) -> None:
        """Adds a row, durably."""
        new = not self._rows.exists()
        with self._rows.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, _COLUMNS)
            if new:
                writer.writeheader()
            writer.writerow(asdict(row))


def _row(record: dict[str, str]) -> Row:
    def number(name: str) -> float | None:
        return float(record[name]) if record[name] else None

    def whole(name: str) -> int | None:
        return int(record[name]) if record[name] else None

    return Row(
        round=int(record["round"]),
        program=record["program"],
        arm=record["arm"],
        loops=int(record["loops"]),
        in_program_s=number("in_program_s"),
        in_program_cpu_s=number("in_program_cpu_s"),
        whole_s=float(record["whole_s"]),
        whole_cpu_s=float(record["whole_cpu_s"]),
        peak_rss_bytes=int(record["peak_rss_bytes"]),
        program_peak_bytes=whole("program_peak_bytes"),
        recording_bytes=whole("recording_bytes"),
        after_program_s=number("after_program_s"),
        start_up_s=number("start_up_s"),
        outcome=record["outcome"],
    )

"""The weights of CPU samples: first samples of threads, where the schedule is stationary."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pytest

from tachograph.analyzer.recording.definitions import Threads
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.samples.weights import weighted_batches

INTERVAL = 10


@dataclass
class Made:
    """As much of a recording as weights look at."""

    batches_of: list[dict[str, list[Any]]]
    interval_ns: int | None = INTERVAL
    schedule: str | None = "stationary"
    rotated_from_ns: int | None = None
    starts: tuple[int | None, ...] = (0, 0, 0, 0)
    asked: list[str] = field(default_factory=list)

    @property
    def manifest(self) -> "Made":
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        return {"schedule": self.schedule}

    @property
    def all_threads(self) -> Threads:
        return Threads(pa.table({"start_ns": pa.array(self.starts, pa.int64())}), 1)

    def batches(self, _: str, columns: Sequence[str], _rows: int = 0) -> Any:
        self.asked = list(columns)
        for columns_of in self.batches_of:
            types = {"system_ns": pa.int64(), "cpu_ns": pa.int64()}
            arrays = [pa.array(columns_of[name], types.get(name, pa.uint32())) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, list(columns))


def weights(made: Made, *columns: str) -> list[dict[str, list[Any]]]:
    names = columns or ("thread", "cpu_ns", "system_ns")
    return [batch.to_pydict() for batch in weighted_batches(cast(Recording, made), names)]


def batch(thread: list[int], cpu: list[int], system: list[int | None], **more: list[int]) -> dict[str, list[Any]]:
    rows = len(thread)
    made: dict[str, list[Any]] = {
        "thread": thread,
        "cpu_ns": cpu,
        "system_ns": system,
        "overruns": [0] * rows,
        "origin": [0] * rows,
    }
    return made | more


def test_the_first_sample_of_a_thread_stands_for_an_interval() -> None:
    made = Made([batch([0, 1, 0, 1], [4, 2, 9, 11], [2, 0, 3, None]), batch([1, 2, 2], [5, 3, 8], [0, None, 1])])
    first, second = weights(made)
    assert first["cpu_ns"] == [10, 10, 9, 11]
    assert first["system_ns"] == [5, 0, 3, None]
    assert second["cpu_ns"] == [5, 10, 8]
    assert second["system_ns"] == [0, None, 1]


def test_each_expiration_of_the_timer_counts() -> None:
    (only,) = weights(Made([batch([0, 1], [35, 7], [0, 0], overruns=[2, 0])]))
    assert only["cpu_ns"] == [30, 10]


def test_what_the_timer_did_not_take_keeps_its_weight() -> None:
    (only,) = weights(Made([batch([0, 0, 1], [500, 3, 4], [0, 0, 0], origin=[1, 0, 0])]))
    assert only["cpu_ns"] == [500, 3, 10]


@pytest.mark.parametrize("changes", [{"schedule": None}, {"schedule": "other"}, {"interval_ns": None}])
def test_other_schedules_keep_their_weights(changes: dict[str, Any]) -> None:
    made = Made([batch([0, 1], [4, 2], [0, 0])], **changes)
    assert weights(made)[0]["cpu_ns"] == [4, 2]
    assert made.asked == ["thread", "cpu_ns", "system_ns"]


def test_a_batch_without_new_threads_is_passed_on_as_it_is() -> None:
    made = Made([batch([0, 1, 2, 3], [1, 1, 1, 1], [0] * 4), batch([3, 2], [7, 8], [1, 2])])
    assert weights(made, "thread", "cpu_ns")[1]["cpu_ns"] == [7, 8]


def test_in_a_later_window_only_threads_that_began_there_have_a_first_sample() -> None:
    batch = {"thread": [0, 1, 2, 3], "cpu_ns": [1] * 4, "system_ns": [0] * 4, "overruns": [0] * 4, "origin": [0] * 4}
    made = Made([batch], rotated_from_ns=100, starts=(100, 101, None, 90))
    (found,) = weights(made)
    assert found["cpu_ns"] == [1, INTERVAL, 1, 1]

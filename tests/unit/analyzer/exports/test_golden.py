"""The golden recordings in every format, and scrubbed: what the format's own tests read, these commands read too."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tachograph.analyzer import Profile, Recording, build_profile
from tachograph.analyzer import open as open_recording
from tachograph.analyzer.exports import FORMATS, Metric, Options, prepare
from tachograph.analyzer.exports.scrub import make_request, scrub
from tachograph.analyzer.exports.value_types import value_sums, value_types
from tachograph.analyzer.profile.question import Question
from tachograph.format import FormatError

pytestmark = pytest.mark.broad

VECTORS = Path(__file__).resolve().parents[4] / "format-spec" / "vectors"
GOLDEN = [path for path in sorted(VECTORS.glob("*.tacho")) if not path.name.startswith("newer-major")]
IN_ALL_TESTS = ("whole", "extra", "memory", "tree", "gpu", "native", "rich", "signal", "pools")


@dataclass(frozen=True)
class Golden:
    """A recording, open, and what analyze says of it."""

    recording: Recording
    profile: Profile


# The others, which are of one table each or were killed, are for the slow tests.
RECORDINGS = [
    pytest.param(path, id=path.name, marks=[] if path.stem in IN_ALL_TESTS else [pytest.mark.slow]) for path in GOLDEN
]


@pytest.fixture(scope="module", params=RECORDINGS)
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    with Recording.open(request.param) as recording:
        yield Golden(recording, build_profile(recording, Question(scope="all")))


@pytest.mark.parametrize("metric", list(Metric))
def test_formats_add_up_to_what_analyze_says(golden: Golden, metric: Metric) -> None:
    column, unit = {
        Metric.CPU: ("cpu_s", 1e9),
        Metric.WAIT: ("wait_s", 1e9),
        Metric.ALLOCATED: ("allocated_bytes", 1),
        Metric.LIVE: ("live_at_peak_bytes", 1),
        Metric.RESIDENT: ("live_at_resident_peak_bytes", 1),
        Metric.END: ("live_at_end_bytes", 1),
        Metric.COPIED: ("copied_bytes", 1),
    }[metric]
    shown = golden.profile.lines[column]
    extract = prepare(golden.recording, metric)
    # Rows that only have times hold nothing, the others are unknown; without a row, all that has no table is.
    unknown = shown.isna().any() if len(shown) else metric not in (Metric.CPU, Metric.WAIT)
    if unknown and not shown.sum():
        with pytest.raises(FormatError, match="was not recorded"):
            extract.sums(extract.tree(lines=False))
        return
    out = io.BytesIO()
    FORMATS["collapsed"].write(extract, Options(), out)
    weights = [int(line.rpartition(b" ")[2]) for line in out.getvalue().splitlines()]
    # Weights are whole numbers, each rounded.
    assert sum(weights) == pytest.approx(shown.sum() * unit, abs=len(weights) + 1)
    for each in FORMATS.values():
        each.write(extract, Options(lines=True, native=True), io.BytesIO())


@pytest.mark.parametrize(("metric", "column"), [(Metric.LIVE, "live_at_peak_bytes"), (Metric.END, "live_at_end_bytes")])
def test_heaps_add_up_to_what_analyze_says(golden: Golden, metric: Metric, column: str) -> None:
    shown = golden.profile.lines
    extract = prepare(golden.recording, metric, heap=True)
    tree = extract.tree(lines=True)
    if not golden.recording.recorded("memory") and not golden.recording.recorded("allocations"):
        with pytest.raises(FormatError, match="no metric 'heap' to export"):
            value_sums(extract, tree)
        return
    sums = value_sums(extract, tree)
    assert list(sums) == ["thread", "node", *(each.name for each in value_types(extract)), "request"]
    assert sums["alloc_space"].sum() == pytest.approx(shown["allocated_bytes"].sum(), abs=len(sums) + 1)
    assert sums["inuse_space"].sum() == pytest.approx(shown[column].sum(), abs=len(sums) + 1)
    # A block has at least a byte.
    assert (sums["inuse_objects"] <= sums["inuse_space"]).all()
    for name in ("pprof", "otlp"):
        FORMATS[name].write(extract, Options(native=True), io.BytesIO())


def test_scrubbed_ones_say_the_same(golden: Golden, tmp_path: Path) -> None:
    target = tmp_path / "scrubbed.tacho"
    scrub(golden.recording, make_request(golden.recording), target)
    with open_recording(target) as recording:
        assert recording.profile(scope="all").totals == golden.profile.totals
        assert recording.manifest.state in ("complete", "recovered")
        assert len(recording.lines(scope="all")) == len(golden.profile.lines)

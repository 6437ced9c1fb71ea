"""The golden recordings in every format, and scrubbed: what the format's own tests read, these commands read too."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tachograph.analyzer import Recording, build_profile
from tachograph.analyzer import open as open_recording
from tachograph.analyzer.exports import FORMATS, Metric, Options, prepare
from tachograph.analyzer.exports.scrub import make_request, scrub
from tachograph.analyzer.exports.value_types import value_sums, value_types
from tachograph.analyzer.profile.question import Question
from tachograph.format import FormatError

pytestmark = pytest.mark.broad

VECTORS = Path(__file__).resolve().parents[4] / "format-spec" / "vectors"
GOLDEN = [path for path in sorted(VECTORS.glob("*.tacho")) if not path.name.startswith("newer-major")]


@pytest.fixture(params=GOLDEN, ids=lambda path: path.name)
def golden(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.mark.parametrize("metric", list(Metric))
def test_formats_add_up_to_what_analyze_says(golden: Path, metric: Metric) -> None:
    with Recording.open(golden) as recording:
        column, unit = {
            Metric.CPU: ("cpu_s", 1e9),
            Metric.WAIT: ("wait_s", 1e9),
            Metric.ALLOCATED: ("allocated_bytes", 1),
            Metric.LIVE: ("live_at_peak_bytes", 1),
            Metric.RESIDENT: ("live_at_resident_peak_bytes", 1),
            Metric.END: ("live_at_end_bytes", 1),
            Metric.COPIED: ("copied_bytes", 1),
        }[metric]
        shown = build_profile(recording, Question(scope="all")).lines[column]
        extract = prepare(recording, metric)
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
def test_heaps_add_up_to_what_analyze_says(golden: Path, metric: Metric, column: str) -> None:
    with Recording.open(golden) as recording:
        shown = build_profile(recording, Question(scope="all")).lines
        extract = prepare(recording, metric, heap=True)
        tree = extract.tree(lines=True)
        if not recording.recorded("memory") and not recording.recorded("allocations"):
            with pytest.raises(FormatError, match="no metric 'heap' to export"):
                value_sums(extract, tree)
            return
        sums = value_sums(extract, tree)
        assert list(sums) == ["thread", "node", *(each.name for each in value_types(extract))]
        assert sums["alloc_space"].sum() == pytest.approx(shown["allocated_bytes"].sum(), abs=len(sums) + 1)
        assert sums["inuse_space"].sum() == pytest.approx(shown[column].sum(), abs=len(sums) + 1)
        # A block has at least a byte.
        assert (sums["inuse_objects"] <= sums["inuse_space"]).all()
        for name in ("pprof", "otlp"):
            FORMATS[name].write(extract, Options(native=True), io.BytesIO())


def test_scrubbed_ones_say_the_same(golden: Path, tmp_path: Path) -> None:
    target = tmp_path / "scrubbed.tacho"
    with Recording.open(golden) as recording:
        scrub(recording, make_request(recording), target)
        original = build_profile(recording, Question(scope="all"))
    with open_recording(target) as recording:
        assert recording.profile(scope="all").totals == original.totals
        assert recording.manifest.state in ("complete", "recovered")
        assert len(recording.lines(scope="all")) == len(original.lines)

"""Whatever shows time shows the same: terminal, JSON, page, summary and exports are fed by one stream and one rule."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gprof2dot
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from rich.console import Console

import tachograph.analyzer.fleet as fleets
from browser import story
from tachograph.analyzer import Attribution, Profile, Question, Recording, build_profile
from tachograph.analyzer.exports import FORMATS, Extract, Metric, Options, prepare
from tachograph.analyzer.recording.question_options import PoolRule, Sort
from tachograph.analyzer.render import json_document
from tachograph.analyzer.render.html.report_page import report
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.numbers import seconds
from tachograph.analyzer.report_data.report_data import build_report_data
from tachograph.analyzer.samples import attribution, stream, weights
from tachograph.analyzer.samples.attribution import Columns, Verdict
from tachograph.analyzer.samples.call_paths import PATH_MEASURES
from unit.analyzer.exports.conftest import pprof_module
from unit.analyzer.recordings import CALL, MS, START, Builder
from unit.report import block

pytestmark = pytest.mark.broad

GOLDEN = Path(__file__).parents[3] / "format-spec" / "vectors"
NATIVE_RECORDINGS = ("whole", "extra", "memory", "tree", "gpu", "story")
PARTS = ("python", "native", "kernel", "unknown")

OTHER_RULES = [each for each in Attribution if each not in (Attribution.AUTO, Attribution.DELAY)]

Sums = dict[str, float]
"""Seconds by part, ``cpu`` and ``wait``."""


def signal_recording(path: Path) -> Path:
    """Ticks of the signal sampler that came late, in one thread and in two, with and without the kernel's part."""
    builder = Builder(path, sampler="signal")
    worker = builder.thread("worker")
    f, opcodes = builder.code(builder.file("/srv/a.py")), (CALL, 45)
    for tick in range(40):
        at = {"time_ns": START + (tick + 1) * 100 * MS, "system_ns": None if tick % 3 else (tick % 5) * 9 * MS}
        builder.cpu(builder.stack((f, tick % 5)), 20 + tick, origin=2, opcode=CALL, native_frame=None, **at)
        if tick % 2:
            values = {"thread": worker, "origin": 3, "opcode": opcodes[tick % 4 // 2], "native_frame": None, **at}
            builder.cpu(builder.stack((f, 7)), 20 + tick, **values)
    return builder.write()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a recording by its name."""
    folder = tmp_path_factory.mktemp("made")
    paths = {"story": story.build(folder / "story.tacho"), "signal": signal_recording(folder / "signal.tacho")}
    paths["pools"] = pool_recording(folder / "pools.tacho")
    return lambda name: paths.get(name, GOLDEN / f"{name}.tacho")


@pytest.fixture(scope="module")
def pprof(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return pprof_module(tmp_path_factory.mktemp("pprof"))


def of_profile(profile: Profile) -> Sums:
    totals = profile.totals
    sums = {"cpu": totals.cpu_s, "wait": totals.wait_s or 0.0}
    return sums | {part: getattr(totals, f"{part}_s") or 0.0 for part in PARTS}


def as_json(profile: Profile, into: Path) -> dict[str, Any]:
    json_document.write(profile, str(into), top=None, sort="cpu")
    document: dict[str, Any] = json.loads(into.read_text("utf-8"))
    return document


def of_json(document: dict[str, Any], table: str) -> Sums:
    rows = [row for row in document[table] if row.get("language") != "native"]
    return {name: sum(row[f"{name}_s"] or 0.0 for row in rows) for name in ("cpu", "wait", *PARTS)}


def of_paths(profile: Profile) -> Sums:
    """The sums by call path; those of native functions are a part of them."""
    sums = dict(zip(PATH_MEASURES, profile.paths.sums.sum(axis=0).tolist(), strict=True))
    native = profile.native_functions["cpu_s"].sum()
    assert native == pytest.approx(profile.paths.sums[profile.paths.tree.native >= 0, 1].sum() / 1e9)
    return {name: sums[f"{name}_ns"] / 1e9 for name in ("cpu", "wait", *PARTS)}


def terminal_report(profile: Profile) -> str:
    text = io.StringIO()
    show(profile, Console(file=text, width=100, highlight=False, markup=False, emoji=False), Sort("cpu"), None)
    return text.getvalue()


def of_terminal(profile: Profile) -> Sums:
    """What the head of the report says: shares of all CPU time, to a tenth of a percent."""
    shares = re.findall(r"(Python|native|kernel|unknown) ([\d.]+) %", terminal_report(profile))
    cpu = profile.totals.cpu_s
    found = {part.lower(): share for part, share in shares}
    assert found
    return {"cpu": cpu} | {part: float(found.get(part, 0)) / 100 * cpu for part in PARTS}


def of_markdown(profile: Profile) -> Sums:
    """What the summary in Markdown says: shares of all CPU time, to a tenth of a percent."""
    text = summary(profile)
    (split,) = re.findall(r"^CPU: (.*)$", text, re.MULTILINE)
    cpu = profile.totals.cpu_s
    found = {
        part.lower(): float(share) for part, share in re.findall(r"(Python|native|kernel|unknown) ([\d.]+) %", split)
    }
    return {"cpu": cpu} | {part: found.get(part, 0.0) / 100 * cpu for part in PARTS}


def of_page(document: dict[str, Any], data: bytes, table: str) -> Sums:
    own = document[table]["own"]
    sums = {name: sum(map(sum, block.grid(own[name], data))) / 1e9 if name in own else 0.0 for name in ("wait", *PARTS)}
    return sums | {"cpu": sum(sums[part] for part in PARTS)}


def as_page(recording: Recording, question: Question) -> tuple[dict[str, Any], bytes]:
    return block.read_block(report(build_report_data(recording, question)))


def of_export(extract: Extract, name: str, pprof: Any, *, native: bool = False) -> float:
    out = io.BytesIO()
    FORMATS[name].write(extract, Options(native=native), out)
    return _READERS[name](out.getvalue(), pprof) / 1e9


def _perfetto(data: bytes, _: Any) -> float:
    trace: Any = perfetto_trace_pb2.Trace()
    trace.ParseFromString(data)
    counts = [packet.perf_sample.timebase_count for packet in trace.packet if packet.HasField("perf_sample")]
    return float(max(counts, default=0))


def _pprof(data: bytes, module: Any) -> float:
    profile = module.Profile()
    profile.ParseFromString(gzip.decompress(data))
    return float(sum(sample.value[-1] for sample in profile.sample))


def _otlp(data: bytes, _: Any) -> float:
    from opentelemetry.proto.profiles.v1development import profiles_pb2

    found = profiles_pb2.ProfilesData()
    found.ParseFromString(data)
    # A process's first profile is that of the metric.
    first = [scope.profiles[0] for resource in found.resource_profiles for scope in resource.scope_profiles]
    return float(sum(sample.values[0] for profile in first for sample in profile.samples))


def _callgrind(data: bytes, _: Any) -> float:
    functions = gprof2dot.CallgrindParser(io.StringIO(data.decode())).parse().functions.values()
    return float(sum(each[gprof2dot.SAMPLES] for each in functions))


def _firefox(data: bytes, _: Any) -> float:
    threads = json.loads(gzip.decompress(data))["threads"]
    return float(sum(sum(thread["samples"]["weight"]) for thread in threads) * 1e6)


_READERS: dict[str, Callable[[bytes, Any], float]] = {
    "speedscope": lambda data, _: float(sum(each["endValue"] for each in json.loads(data)["profiles"])),
    "collapsed": lambda data, _: float(sum(int(line.rpartition(" ")[2]) for line in data.decode().splitlines())),
    "csv": lambda data, _: float(sum(int(row["self"]) for row in csv.DictReader(io.StringIO(data.decode())))),
    "pprof": _pprof,
    "otlp": _otlp,
    "callgrind": _callgrind,
    "firefox": _firefox,
    "perfetto": _perfetto,
}


def close(sums: Sums, truth: Sums, within: float) -> None:
    assert sums == pytest.approx({name: truth[name] for name in sums}, abs=within)


def assert_all_alike(path: Path, rule: Attribution, folder: Path, pprof: Any) -> Sums:
    """Every way of showing the time of a recording tells the same; returns that."""
    question = Question(scope="all", attribution=rule)
    with Recording.open(path) as recording:
        profile = build_profile(recording, question)
        truth = of_profile(profile)
        assert truth["cpu"] == pytest.approx(sum(truth[part] for part in PARTS), rel=1e-9)
        document, page = as_json(profile, folder / "profile.json"), as_page(recording, question)
        for table in ("lines", "functions", "files", "threads"):
            close(of_json(document, table), truth, 1e-6)
            close(of_page(*page, table), truth, 2e-5)
        close(of_paths(profile), truth, 1e-6)
        close(of_page(*page, "flame"), truth, 2e-5)
        close(of_terminal(profile), truth, 0.00051 * truth["cpu"])
        close(of_markdown(profile), truth, 0.00051 * truth["cpu"])
        assert_native_threads_alike(recording, question, folder)
        if profile.spans is not None and len(profile.spans):
            assert profile.spans["cpu_s"].sum() == pytest.approx(truth["cpu"], rel=1e-9)
        extract = prepare(recording, Metric.CPU)
        for name in FORMATS:
            for native in (False, True):
                told = of_export(extract, name, pprof, native=native)
                assert told == pytest.approx(truth["cpu"], rel=1e-6), (name, native)
    return truth


def assert_native_threads_alike(recording: Recording, question: Question, folder: Path) -> None:
    """What native threads used stands once in each table, whatever of it is charged; the page has the same by line."""
    for rule in PoolRule:
        profile = build_profile(recording, replace(question, pools=rule))
        totals = profile.totals
        document = as_json(profile, folder / "pools.json")
        assert document["totals"]["pool_cpu_s"] == pytest.approx(totals.pool_cpu_s, abs=1e-6)
        for table in ("lines", "functions", "files"):
            charged = [row["pool_cpu_s"] or 0.0 for row in document[table]]
            assert sum(charged) == pytest.approx(totals.pool_cpu_s, abs=1e-6)
            left = [row["pool_cpu_s"] for row in document[table] if row.get("function") == "<no Python stack>"]
            assert table == "files" or sum(left) == pytest.approx(totals.pool_unattributed_s, abs=1e-6)
        assert 0 <= totals.pool_waiting_s <= totals.pool_unattributed_s <= totals.pool_cpu_s <= totals.cpu_s + 1e-9
        assert rule is PoolRule.POSITIONS or totals.pool_unattributed_s == totals.pool_cpu_s
        page, _ = as_page(recording, replace(question, pools=rule))
        shown = page["lines"]["columns"].get("pool_cpu_s", [])
        assert sum(value or 0.0 for value in shown) == pytest.approx(totals.pool_cpu_s, rel=1e-3, abs=1e-4)


def pool_recording(path: Path) -> Path:
    """Two threads that ask a pool of two workers, which also wait, and a thread that no pool has."""
    builder = Builder(path)
    code = builder.code(builder.file("/srv/a.py"))
    asks, sleeps = builder.stack((code, 1)), builder.stack((code, 2))
    library = builder.module("/lib/libopenblas.so")
    kernel, server = builder.native_frame(library, "kernel"), builder.native_frame(library, "blas_thread_server")
    other = builder.thread("other")
    workers = [builder.thread(None, python_name=None, start_frame=server) for _ in range(2)]
    builder.cpu(asks, 3, native_frame=kernel)
    for number in range(40):
        at = (number + 1) * 10
        sampled = {"thread": workers[number % 2], "native_frame": server if number % 5 == 0 else kernel}
        builder.cpu(None, 7 + number % 3, time_ns=START + at * MS, **sampled)
        builder.position(
            workers[number % 2], 0, asks if number % 3 else sleeps, at, 5 * number, running=number % 4 == 0
        )
        builder.position(workers[number % 2], other, asks if number % 7 else sleeps, at, number)
    return builder.write()


def test_native_threads(made: Callable[[str], Path], tmp_path: Path, pprof: Any) -> None:
    truth = assert_all_alike(made("pools"), Attribution.AUTO, tmp_path, pprof)
    with Recording.open(made("pools")) as recording:
        totals = build_profile(recording, Question(scope="all")).totals
    assert truth["cpu"] - totals.pool_cpu_s == pytest.approx(0.003)
    assert totals.pool_cpu_s > totals.pool_unattributed_s > totals.pool_waiting_s > 0


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *((name, Attribution.AUTO) for name in NATIVE_RECORDINGS),
        *(("story", each) for each in OTHER_RULES),
        *(pytest.param("tree", each, marks=pytest.mark.slow) for each in OTHER_RULES),
    ],
)
def test_golden_recordings(
    name: str, rule: Attribution, made: Callable[[str], Path], tmp_path: Path, pprof: Any
) -> None:
    assert assert_all_alike(made(name), rule, tmp_path, pprof)["cpu"] > 0


@pytest.mark.parametrize(
    "rule",
    [
        *(Attribution.AUTO, Attribution.DELAY, Attribution.NATIVE),
        *(pytest.param(each, marks=pytest.mark.slow) for each in OTHER_RULES if each is not Attribution.NATIVE),
    ],
)
def test_the_signal_sampler(rule: Attribution, made: Callable[[str], Path], tmp_path: Path, pprof: Any) -> None:
    truth = assert_all_alike(made("signal"), rule, tmp_path, pprof)
    assert rule is Attribution.NATIVE or truth["native"] > 0 or truth["unknown"] > 0


@pytest.mark.parametrize("name", ["whole", "tree", "story"])
def test_a_run_has_one_duration(name: str, made: Callable[[str], Path], tmp_path: Path, pprof: Any) -> None:
    """Whatever says how long the program ran says the same: report, page, summary, export and fleet."""
    folder = tmp_path / "fleet"
    shutil.copytree(made(name), folder / "run.tacho")
    with Recording.open(made(name)) as recording:
        profile = build_profile(recording, Question(scope="all"))
        wall_s = profile.totals.wall_s
        assert wall_s is not None
        assert as_json(profile, tmp_path / "profile.json")["totals"]["wall_s"] == pytest.approx(wall_s, abs=1e-6)
        for text in (terminal_report(profile), summary(profile)):
            assert re.findall(r"(\S+ m?s) wall", text)[:1] == [seconds(wall_s)]
        head = as_page(recording, Question(scope="all"))[0]["head"]
        assert [figure["value"] for figure in head["figures"] if figure["text"] == "wall"] == [seconds(wall_s)]
        out = io.BytesIO()
        FORMATS["pprof"].write(prepare(recording, Metric.CPU), Options(), out)
    exported = pprof.Profile()
    exported.ParseFromString(gzip.decompress(out.getvalue()))
    assert exported.duration_nanos / 1e9 == pytest.approx(wall_s, abs=1e-6)
    assert float(fleets.open(str(folder)).recordings["wall_s"].sum()) == pytest.approx(wall_s, abs=1e-6)


@pytest.mark.parametrize("name", ["whole", "tree", "story"])
def test_exports_of_waits(name: str, made: Callable[[str], Path], pprof: Any) -> None:
    with Recording.open(made(name)) as recording:
        waited = build_profile(recording, Question(scope="all")).totals.wait_s
        assert waited
        extract = prepare(recording, Metric.WAIT)
        for each in FORMATS:
            if each != "perfetto":  # slices, of which the weight is no part
                assert of_export(extract, each, pprof) == pytest.approx(waited, rel=1e-6), each


@pytest.mark.parametrize("name", ["whole", pytest.param("story", marks=pytest.mark.slow)])
def test_another_rule_changes_all_alike(
    name: str, made: Callable[[str], Path], tmp_path: Path, pprof: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = assert_all_alike(made(name), Attribution.AUTO, tmp_path, pprof)
    published = attribution.native_rule

    def reversed_rule(columns: Columns) -> NDArray[np.int64]:
        verdict = published(columns)
        return np.where(verdict == Verdict.UNKNOWN, verdict, Verdict.PYTHON + Verdict.NATIVE - verdict)

    monkeypatch.setattr(attribution, "native_rule", reversed_rule)
    after = assert_all_alike(made(name), Attribution.AUTO, tmp_path, pprof)
    assert after == pytest.approx({**before, "python": before["native"], "native": before["python"]})
    assert before["python"] != pytest.approx(before["native"])


def test_other_weights_change_all_alike(
    made: Callable[[str], Path], tmp_path: Path, pprof: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = assert_all_alike(made("whole"), Attribution.AUTO, tmp_path, pprof)
    published = weights.weighted_batches

    def doubled(*given: Any) -> Iterator[pa.RecordBatch]:
        for batch in published(*given):
            names = batch.schema.names
            columns = [
                pa.array(batch.column(name).to_numpy() * 2) if name == "cpu_ns" else batch.column(name)
                for name in names
            ]
            yield pa.RecordBatch.from_arrays(columns, names)

    monkeypatch.setattr(stream, "weighted_batches", doubled)
    after = assert_all_alike(made("whole"), Attribution.AUTO, tmp_path, pprof)
    assert after["cpu"] == pytest.approx(2 * before["cpu"])
    assert after["wait"] == before["wait"]

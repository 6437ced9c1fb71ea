"""The options of ``record``: one row each, and all that is known of an option is in its row.

From this table come the command line (command_line.py reads it, click shows it in ``--help`` and completes it), the
keys of ``[tool.tachograph]`` in ``pyproject.toml``, the values for the manifest and the recorded program, and the table
in docs/reference/cli.md. It is read before the program starts, and therefore imports no click.
"""

from __future__ import annotations

from tachograph.format.plain_records import field, fields_of, record_class, replaced
from tachograph.recorder.command.option_values import (
    ACCESSES,
    CALL_CHOICES,
    DEFAULT_BUDGET,
    DEFAULT_CALLS_BUDGET,
    DEFAULT_CALLS_PERIOD_S,
    DEFAULT_CALLS_TOP,
    DEFAULT_NATIVE_DEPTH,
    DEFAULT_THRESHOLD,
    SAMPLERS,
    one_of,
    parse_budget,
    parse_calls_budget,
    parse_calls_period,
    parse_calls_top,
    parse_interval,
    parse_native_depth,
    parse_pattern,
    parse_threshold,
)
from tachograph.recorder.labels.label_text import parse_label
from tachograph.recorder.problems import Refused
from tachograph.recorder.rotation.rotation_settings import DEFAULT_KEEP, Rotate, parse_keep, parse_rotate, parse_signal
from tachograph.recorder.upload.destination import Destination, parse_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

NUMBER, TEXT, SIZE, FLAG, LIST = "a number", "a text", "a number or a text", "true or false", "a list of texts"
"""Kinds of values in ``pyproject.toml``."""

OUTPUT, WHAT, PROCESSES, LONG_RUNS = "Output", "What to record", "Processes", "Long runs"
RESEARCH = "Research"
"""Groups in ``--help``; the last one is hidden there."""


@record_class
class Option:
    """One option.

    ``names`` are those of the command line; ``off`` those that switch a flag off. An option without ``parse`` is a
    flag; ``parse`` raises ValueError, with one line for the user. ``choices`` need none. ``help`` is the line in
    ``--help``, under the heading ``group``, and ``more`` follows it in the reference. ``shown`` is the default as it is
    shown. ``key`` is the option's name in ``pyproject.toml``, and ``kind`` what its values are there. ``manifest`` is
    the parameter in the manifest, ``setting`` the key in the configuration of the recorded program, and ``encode``
    makes their value of the option's; None leaves it out. ``conflict`` says why the option has no effect with others.
    ``inside`` tells whether it works for a recording that a program begins itself: some are the command's alone, which
    is there before the program is.
    """

    names: tuple[str, ...]
    help: str
    group: str
    more: str = ""
    off: tuple[str, ...] = ()
    metavar: str = ""
    parse: Callable[[str], Any] | None = None
    choices: tuple[str, ...] = ()
    repeated: bool = False
    shown: str = ""
    key: str = ""
    kind: str = TEXT
    manifest: str = ""
    setting: str = ""
    encode: Callable[[Any], Any] | None = None
    conflict: Callable[[Options], str | None] = lambda _: None
    inside: bool = True

    @property
    def long(self) -> str:
        """The long name."""
        return self.names[-1]


def row(*names: str, group: str, default: Any, help: str, **rest: Any) -> Any:  # noqa: A002  # as click calls it
    """A field of Options with its row of the table; a number or a text is its own default in the help."""
    shown = f"{default:g}" if isinstance(default, float) else default if isinstance(default, str) else ""
    read = {"parse": one_of(rest["choices"])} if "choices" in rest else {}
    return field(default=default, metadata=Option(names, help, group, **{"shown": shown, **read, **rest}))


INTERVAL_MS = 10.0
INTERVAL_OF_REDUNDANCY_MS = 4.0
"""Pairs of accesses are rarer than samples."""


def _patterns(value: tuple[str, ...]) -> list[str] | None:
    return list(value) or None


def _nanoseconds(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def _of_memory(options: Options) -> str | None:
    if options.memory is False:
        return "--memory-threshold is of no use with --cpu-only, which records no memory: leave one of them out"
    if options.sampler != "native":
        return "--memory-threshold is of no use with --sampler signal, which records no memory: leave it out"
    if not options.records_memory:
        return "--memory-threshold is of no use with --redundancy, which records no memory: add --with-memory"
    return None


def _of_budget(options: Options) -> str | None:
    if not options.records_memory:
        return "--budget is about how many blocks of memory are sampled, and none are: leave it out"
    return None


def _permille(percent: float | None) -> int | None:
    return None if percent is None else round(percent * 10)


def _of_native_depth(options: Options) -> str | None:
    if options.native_depth and options.sampler != "native":
        return "--native-depth is of no use with --sampler signal, which sees no native code: leave it out"
    return None


def _if_on(value: bool) -> bool | None:  # as it is in Options
    return value or None


def _seconds(value: float | None) -> int | None:
    return None if value is None else round(value * 1e9)


def _of_calls(options: Options) -> str | None:
    if options.calls and options.sampler != "native":
        return "--calls is of no use with --sampler signal, which sees no calls: leave one of them out"
    return None


def _of_call_options(options: Options) -> str | None:
    if not options.calls:
        return "--calls-budget, --calls-choice, --calls-top and --calls-period are about --calls: add it"
    return None


def _of_referrers(options: Options) -> str | None:
    if options.sampler != "native":
        return "--referrers is of no use with --sampler signal, which records no memory: leave it out"
    if not options.records_memory:
        return "--referrers is about live blocks of memory, and none are recorded: leave it out, or add --with-memory"
    return None


def _of_redundancy(options: Options) -> str | None:
    if options.sampler != "native":
        return "--redundancy is of no use with --sampler signal, which sees no native code: leave it out"
    return None


def _of_accesses(options: Options) -> str | None:
    return None if options.redundancy else "--accesses says what --redundancy watches: add --redundancy"


def _of_filters(options: Options) -> str | None:
    if options.sampler != "native":
        return "--include and --exclude are of no use with --sampler signal, which records one process"
    return None


def _of_rotate(options: Options) -> str | None:
    if isinstance(options.path, Destination) and options.path.names_one:
        return "--rotate makes many recordings: name a folder of the store, one that does not end in .tacho"
    return None


def _of_keep(options: Options) -> str | None:
    if options.rotate is None:
        return "--keep says how many windows of --rotate are kept: add --rotate 10m, for example"
    if isinstance(options.path, Destination):
        return "--keep is about windows on this disk, and those that are sent to a store stay there: leave it out"
    return None


def _of_snapshots(options: Options) -> str | None:
    if options.rotate is None:
        return "--snapshot-signal keeps windows of --rotate: add --rotate 10m, for example"
    return None


@record_class
class Options:
    """The values of the options of ``record``. Those that are None or empty were not given."""

    path: str | Destination | None = row(
        "-o", "--output", group=OUTPUT, default=None, metavar="DIR.tacho|URL", parse=parse_output,
        shown="NAME-001.tacho",
        help="Recording to write.",
        more="A directory, named after the program with the next free number; or a URL of fsspec such as "
        "s3://bucket/folder, with `pip install 'tachograph[upload]'`: see [many "
        "recordings](../how-to/ask-many-recordings.md).",
    )  # fmt: skip
    interval_ms: float | None = row(
        "--interval", group=WHAT, default=None, metavar="MS", parse=parse_interval, key="interval", kind=NUMBER,
        shown=f"{INTERVAL_MS:g}",
        help="CPU time between two samples.",
        more=f"Of a thread, in milliseconds; {INTERVAL_OF_REDUNDANCY_MS:g} with --redundancy.",
        manifest="interval_ns", setting="interval_ns", encode=_nanoseconds,
    )  # fmt: skip
    memory: bool | None = row(
        "--with-memory", group=WHAT, off=("--cpu-only",), default=None, key="cpu-only", kind=FLAG,
        help="Record memory too (default), or time only.",
        more="Memory includes copies. With --redundancy, --cpu-only is the default.",
        manifest="memory", setting="memory",
    )  # fmt: skip
    memory_threshold: int | None = row(
        "--memory-threshold", group=WHAT, default=None, metavar="BYTES", parse=parse_threshold,
        shown=str(DEFAULT_THRESHOLD), key="memory-threshold", kind=SIZE, conflict=_of_memory,
        help="Memory change to record.",
        more="Write a row of `memory` whenever the bytes held have changed by so much: a number, or such as 64K, 1M, "
        "10MB; at least 64K. The default is a prime above 10 MiB.",
        manifest="memory_threshold", setting="threshold",
    )  # fmt: skip
    referrers: bool = row(
        "--referrers", group=WHAT, default=False, key="referrers", kind=FLAG, conflict=_of_referrers, inside=False,
        help="Search for what keeps memory alive.",
        more="When the interpreter begins to shut down, and at tachograph.recorder.snapshot(): at most 0.5 s, for the "
        "largest live sites. See [memory](../explanation/memory.md#what-keeps-it).",
        manifest="referrers", setting="referrers", encode=_if_on,
    )  # fmt: skip
    budget: float | None = row(
        "--budget", group=WHAT, default=None, metavar="PERCENT", parse=parse_budget, shown=f"{DEFAULT_BUDGET:g}",
        conflict=_of_budget, key="budget", kind=NUMBER,
        help="Limit overhead to this CPU share.",
        more="The limit is a share of the program's CPU time, or of one CPU where the program uses less. Memory is "
        "sampled less often when needed; estimates stay right on average.",
        manifest="budget_permille", setting="budget", encode=_permille,
    )  # fmt: skip
    native_depth: int | None = row(
        "--native-depth", group=WHAT, default=None, metavar="FRAMES", parse=parse_native_depth,
        shown=str(DEFAULT_NATIVE_DEPTH), key="native-depth", kind=NUMBER, conflict=_of_native_depth,
        help="Frames per native call path.",
        more="The innermost ones are kept, at most 1000; 0 leaves native call paths out.",
        manifest="native_depth", setting="native_depth",
    )  # fmt: skip
    calls: bool = row(
        "--calls", group=WHAT, default=False, key="calls", kind=FLAG, conflict=_of_calls, inside=False,
        help="Count and time calls of Python functions.",
        more="See [calls](../how-to/count-calls.md).",
        manifest="calls", setting="calls", encode=_if_on,
    )  # fmt: skip
    calls_budget: float | None = row(
        "--calls-budget", group=WHAT, default=None, metavar="PERCENT", parse=parse_calls_budget, inside=False,
        shown=f"{DEFAULT_CALLS_BUDGET:g}", conflict=_of_call_options, key="calls-budget", kind=NUMBER,
        help="Limit the overhead of --calls.",
        more="The limit is for watching and samples together, as a share of the time.",
        manifest="calls_budget", setting="calls_budget",
    )  # fmt: skip
    calls_choice: str | None = row(
        "--calls-choice", group=RESEARCH, default=None, choices=CALL_CHOICES, shown="racing", inside=False,
        conflict=_of_call_options, key="calls-choice",
        help="With --calls: how to choose the functions to watch.",
        more="By racing (95 % Bernstein bounds), or by successive rejects until the functions of --calls-top are left.",
        manifest="calls_choice", setting="calls_choice",
    )  # fmt: skip
    calls_top: int | None = row(
        "--calls-top", group=RESEARCH, default=None, metavar="N", parse=parse_calls_top, shown=str(DEFAULT_CALLS_TOP),
        inside=False, conflict=_of_call_options, key="calls-top", kind=NUMBER,
        help="With --calls-choice rejects: how many functions are left.",
        manifest="calls_top", setting="calls_top",
    )  # fmt: skip
    calls_period_s: float | None = row(
        "--calls-period", group=RESEARCH, default=None, metavar="SECONDS", parse=parse_calls_period, inside=False,
        shown=f"{DEFAULT_CALLS_PERIOD_S:g}", conflict=_of_call_options, key="calls-period", kind=NUMBER,
        help="With --calls: reconsider which functions to time every SECONDS.",
        manifest="calls_period_ns", setting="calls_period_ns", encode=_seconds,
    )  # fmt: skip
    redundancy: bool = row(
        "--redundancy", group=WHAT, default=False, conflict=_of_redundancy, inside=False,
        help="Find loads and stores that repeat a value.",
        more="Where the kernel gives no watchpoints (perf_event_open), recording goes on without, and says so. See "
        "[redundancy](../explanation/redundancy.md).",
        manifest="redundancy",
    )  # fmt: skip
    accesses: str = row(
        "--accesses", group=RESEARCH, default="both", choices=ACCESSES, conflict=_of_accesses, inside=False,
        help="With --redundancy: which accesses are watched.",
        manifest="accesses", setting="accesses",
    )  # fmt: skip
    gpu: bool = row(
        "--gpu", group=WHAT, off=("--no-gpu",), default=True, key="gpu", kind=FLAG,
        help="Do not read GPUs.",
        more="By default their use, memory and power are read where there is a driver. See "
        "[GPUs](../explanation/gpu.md).",
    )  # fmt: skip
    sources: bool = row(
        "--sources", group=WHAT, off=("--no-sources",), default=True, key="sources", kind=FLAG,
        help="Do not store the text of source files.",
        more="By default it is stored.",
        manifest="sources",
    )  # fmt: skip
    native_lines: bool = row(
        "--native-lines", group=WHAT, off=("--no-native-lines",), default=True, key="native-lines", kind=FLAG,
        help="Do not look up source lines of native code.",
        more="By default they are read when the run has ended, from the library's debug information or from "
        "/usr/lib/debug.",
        manifest="native_lines",
    )  # fmt: skip
    start_paused: bool = row(
        "--start-paused", group=WHAT, default=False,
        help="Record nothing until resume() is called.",
        more="The program calls tachograph.recorder.resume().",
        manifest="start_paused", setting="paused",
    )  # fmt: skip
    sampler: str = row(
        "--sampler", group=WHAT, default="native", choices=SAMPLERS, key="sampler", inside=False,
        help="How to sample.",
        more="'signal' is pure Python and works without native parts, but records less.",
        manifest="sampler", setting="sampler",
    )  # fmt: skip
    children: bool = row(
        "--children", group=PROCESSES, off=("--no-children",), default=True, key="children", kind=FLAG,
        help="Record the program's first process only.",
        more="By default the processes that it starts are recorded as well.",
        manifest="children", setting="children",
    )  # fmt: skip
    include: tuple[str, ...] = row(
        "--include", group=PROCESSES, default=(), metavar="NAME", parse=parse_pattern, repeated=True, key="include",
        kind=LIST, conflict=_of_filters, inside=False,
        help="Record only processes of this name (a glob).",
        more="Of Python processes; may be repeated. The name is that of the script (with or without `.py`), module or "
        "interpreter (such as `python3.12`); of code `-c` or the module that it imports from first "
        "(`multiprocessing.spawn`). Other processes are still listed with their times.",
        manifest="include", setting="include", encode=_patterns,
    )  # fmt: skip
    exclude: tuple[str, ...] = row(
        "--exclude", group=PROCESSES, default=(), metavar="NAME", parse=parse_pattern, repeated=True, key="exclude",
        kind=LIST, conflict=_of_filters, inside=False,
        help="Leave out processes of this name (a glob).",
        more="Of Python processes; may be repeated.",
        manifest="exclude", setting="exclude", encode=_patterns,
    )  # fmt: skip
    rotate: Rotate | None = row(
        "--rotate", group=LONG_RUNS, default=None, metavar="TIME|SIZE", parse=parse_rotate, conflict=_of_rotate,
        inside=False,
        help="Start a new recording after TIME or SIZE.",
        more="TIME is such as 30s, 10m, 1h, 1d (at least `1s`), SIZE such as 500KB, 200MB, 1GB (at least `100KB`; with "
        "its B: 10m are minutes). DIR.tacho is the present recording; closed ones are DIR.0001.tacho and so on. See [a "
        "flight recorder](../how-to/keep-a-flight-recorder.md).",
        manifest="rotate", encode=lambda value: value and value.typed,
    )  # fmt: skip
    keep: int | None = row(
        "--keep", group=LONG_RUNS, default=None, metavar="N", parse=parse_keep, shown=str(DEFAULT_KEEP),
        conflict=_of_keep, inside=False,
        help="Closed recordings to keep.",
        more="With --rotate: older ones of this run are deleted.",
    )  # fmt: skip
    snapshot_signal: int | None = row(
        "--snapshot-signal", group=LONG_RUNS, default=None, metavar="NAME", parse=parse_signal, conflict=_of_snapshots,
        inside=False,
        help="On this signal, keep the recordings for good.",
        more="With --rotate: when this signal (USR1, USR2, RTMIN+3) comes to this command, the present recording is "
        "closed, and it and the kept ones are never deleted. The program does not get the signal. "
        "tachograph.recorder.snapshot() does the same from inside the program.",
    )  # fmt: skip
    labels: tuple[tuple[str, str], ...] = row(
        "--label", group=OUTPUT, default=(), metavar="KEY=VALUE", parse=parse_label, repeated=True, key="label",
        kind=LIST,
        help="Label the recording, such as version=1.4.",
        more="May be repeated; `TACHOGRAPH_LABELS` has more. Ranks, Kubernetes, Slurm, OpenTelemetry and git give "
        "[labels](../how-to/label-recordings.md) automatically.",
    )  # fmt: skip
    force: bool = row("-f", "--force", group=OUTPUT, default=False, help="Replace an existing recording.")
    quiet: bool = row(
        "-q", "--quiet", group=OUTPUT, default=False, inside=False, help="Do not print the line at the end."
    )

    def check(self) -> None:
        """Refuse a value that has no effect with the others."""
        for name, option in OPTIONS.items():
            why = None if getattr(self, name) == DEFAULTS[name] else option.conflict(self)
            if why is not None:
                raise Refused(why)

    @property
    def records_memory(self) -> bool:
        """True if memory and copies are recorded."""
        memory = not self.redundancy if self.memory is None else self.memory
        return memory and self.sampler == "native"

    @property
    def sees_allocations(self) -> bool:
        """True if the program is recorded by what sees allocations: what is watched for redundancy may be released."""
        return self.records_memory or self.redundancy

    def as_settings(self, target: str) -> dict[str, Any]:
        """The values as the manifest (``target`` is "manifest") or the recorded program ("setting") gets them.

        Values stand for what is done: no memory with the signal sampler, and thresholds that were not given.
        """
        memory = self.records_memory
        threshold = (self.memory_threshold or DEFAULT_THRESHOLD) if memory else None
        depth = 0
        if self.sampler == "native":
            depth = DEFAULT_NATIVE_DEPTH if self.native_depth is None else self.native_depth
        interval_ms = self.interval_ms
        if interval_ms is None:
            interval_ms = INTERVAL_OF_REDUNDANCY_MS if self.redundancy else INTERVAL_MS
        done = replaced(self, interval_ms=interval_ms, memory=memory, memory_threshold=threshold, native_depth=depth)
        if not self.redundancy:
            done = replaced(done, accesses=None)  # None is left out
        values = {}
        for name, option in OPTIONS.items():
            value = getattr(done, name)
            values[getattr(option, target)] = value if option.encode is None else option.encode(value)
        return {name: value for name, value in values.items() if name and value is not None}


OPTIONS: Mapping[str, Option] = {name: each.metadata for name, each in fields_of(Options).items()}
"""The table: the options by their field of Options."""
DEFAULTS: Mapping[str, Any] = {name: each.default for name, each in fields_of(Options).items()}


def project_values(table: Mapping[str, Any]) -> dict[str, Any]:
    """Values of Options from values of ``pyproject.toml`` by field, each of its option's kind.

    Raises Refused, one line, if an option refuses one.
    """
    return {name: _project_value(OPTIONS[name], value) for name, value in table.items()}


def _project_value(option: Option, value: Any) -> Any:
    if option.parse is None:
        return value == (f"--{option.key}" in option.names)
    if option.repeated:
        return tuple(parsed(option, each) for each in value)
    return parsed(option, str(value))


def parsed(option: Option, text: str) -> Any:
    """The value that ``text`` stands for; refuses what the option refuses."""
    assert option.parse is not None
    try:
        return option.parse(text)
    except ValueError as error:
        raise Refused(f"invalid value for '{' / '.join(option.names)}': {error}") from None

"""The settings of a recorded program: one row per key of ``TACHOGRAPH_CONFIG``, and the text that is made of them.

From this table come the options as the native library reads them (native/include/tachograph/options.h and
native/shim/spool/options_table.h, by ``make generate``). Options of ``record`` name their key in ``options.py``; the
other settings are facts of the recording command. It is read before the program starts.
"""

from __future__ import annotations

from tachograph.format.plain_records import record_class
from tachograph.recorder.inprocess.process_filter import join_patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Value = float | str | Sequence[str]
    """A number, a flag, a text, or a list of patterns."""

NUMBER, DECIMAL, FLAG, WORD, TEXT = "number", "decimal", "flag", "word", "text"
"""Kinds of values. Numbers are not negative; a decimal may have a fraction; a word is one of a few."""


@record_class
class Setting:
    """One setting.

    ``native`` is its field in ``tg_options``; without one the native library does not read it. ``missing`` is the value
    where the key is missing; None: without it nothing can be recorded. ``words`` are the numbers of a word's values.
    """

    kind: str
    doc: str
    native: str = ""
    missing: float | None = 0
    words: Mapping[str, int] = {}  # never changed


SETTINGS: Mapping[str, Setting] = {
    "interval_ns": Setting(NUMBER, "CPU time between two samples of a thread", "interval_ns", None),
    "segment": Setting(NUMBER, "bytes of a segment of the spool", "segment_size", None),
    "sampler": Setting(TEXT, "the sampler: native or signal"),
    "waits": Setting(FLAG, "sample waits", "waits"),
    "paused": Setting(FLAG, "begin paused", "paused"),
    "memory": Setting(FLAG, "count and sample memory and copies", "memory"),
    "threshold": Setting(NUMBER, "bytes by which memory changes from row to row", "memory_threshold"),
    "budget": Setting(NUMBER, "CPU time that recording may take, in 1/1000 of the program's", "budget_permille", 60),
    "native_depth": Setting(NUMBER, "frames of a native call path; 0: none is recorded", "native_depth"),
    "accesses": Setting(
        WORD, "accesses that are watched for redundancy: the sum of TG_REDUNDANT_*", "redundancy", 0,
        {"loads": 1, "stores": 2, "both": 3},
    ),
    "referrers": Setting(FLAG, "at the end search for what keeps the largest live blocks", "referrers"),
    "calls": Setting(FLAG, "count and time calls of Python functions", "calls"),
    "calls_budget": Setting(DECIMAL, "percent of the time that watching calls may take", "calls_budget_percent", 2),
    "calls_period_ns": Setting(NUMBER, "how often the watched functions are chosen", "calls_period_ns", 10**9),
    "calls_choice": Setting(
        WORD, "how they are chosen: 0 racing, 1 successive rejects", "calls_choice", 0, {"racing": 0, "rejects": 1}
    ),
    "calls_top": Setting(NUMBER, "with rejects: functions that are left", "calls_top", 10),
    "children": Setting(FLAG, "record forked and started children, too", "children", 1),
    "include": Setting(TEXT, "patterns of programs that are recorded"),
    "exclude": Setting(TEXT, "patterns of programs that are not recorded"),
    "rotate": Setting(FLAG, "the recording command deletes old windows", "rotates"),
    "owner": Setting(NUMBER, "user id of the recording command; -1 unknown", "owner", -1),
    "home": Setting(TEXT, "folder of the recorder package, escaped", "home"),
    "place": Setting(TEXT, "DEVICE:INODE of the spool", "place"),
    "log": Setting(TEXT, "PATH:DEVICE:INODE of the process log in memory", "log"),
    "fd_broker": Setting(TEXT, "name of the recording command's socket", "fd_broker"),
    "ignored": Setting(NUMBER, "glibc's own signals that the caller ignores: 1 is signal 32, 2 is 33", "ignored"),
    "memory_at_once": Setting(FLAG, "memory files are filled when they are made", "memory_at_once"),
}  # fmt: skip
"""The table, by key."""


def settings_text(values: Mapping[str, Value]) -> str:
    """The settings as ``TACHOGRAPH_CONFIG`` has them: ``KEY=VALUE`` with commas between them."""
    return ",".join(f"{key}={_text(value)}" for key, value in values.items())


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:d}" if isinstance(value, int) else join_patterns(value)

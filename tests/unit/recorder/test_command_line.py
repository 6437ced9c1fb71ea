"""The command line of `record`: its options, and where the program begins."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import click
import pytest

from tachograph.format.plain_records import fields_of
from tachograph.recorder.command.command_line import HELP, read
from tachograph.recorder.command.options import DEFAULTS, FLAG, LIST, OPTIONS, Options
from tachograph.recorder.command.record_command import record
from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.problems import Refused
from tachograph.recorder.rotation.rotation_settings import parse_rotate

A = Target(Kind.SCRIPT, "a.py")


def options(line: str, project: dict[str, Any] | None = None) -> Options:
    return read([*line.split(), "a.py"]).options(project or {})


@pytest.mark.parametrize(
    ("line", "typed", "target"),
    [
        ("a.py", [], A),
        ("a.py -o x --help -- b", [], Target(Kind.SCRIPT, "a.py", ("-o", "x", "--help", "--", "b"))),
        ("-q -o out a.py -q", [("-q", None), ("-o", "out")], Target(Kind.SCRIPT, "a.py", ("-q",))),
        ("-oout a.py", [("-o", "out")], A),
        ("-o --quiet a.py", [("-o", "--quiet")], A),
        ("-qfo out a.py", [("-q", None), ("-f", None), ("-o", "out")], A),
        ("-qfoout a.py", [("-q", None), ("-f", None), ("-o", "out")], A),
        ("--output=out a.py", [("--output", "out")], A),
        ("--output= a.py", [("--output", "")], A),
        ("--output=a=b a.py", [("--output", "a=b")], A),
        ("--interval 5 --force a.py", [("--interval", "5"), ("--force", None)], A),
        ("-m mod -o x", [], Target(Kind.MODULE, "mod", ("-o", "x"))),
        ("-mmod x", [], Target(Kind.MODULE, "mod", ("x",))),
        ("-qm mod x", [("-q", None)], Target(Kind.MODULE, "mod", ("x",))),
        ("-f -c pass -m", [("-f", None)], Target(Kind.CODE, "pass", ("-m",))),
        ("-cpass", [], Target(Kind.CODE, "pass")),
        ("-q -- -odd.py x", [("-q", None)], Target(Kind.SCRIPT, "-odd.py", ("x",))),
        ("- x", [], Target(Kind.SCRIPT, "-", ("x",))),
        ("-q --help", [("-q", None), ("--help", None)], None),
        ("", [], None),
        ("--", [], None),
    ],
)
def test_read(line: str, typed: list[tuple[str, str | None]], target: Target | None) -> None:
    found = read(line.split())
    assert (list(found.typed), found.target, found.help) == (typed, target, "--help" in dict(typed))


def test_an_empty_argument_is_a_script_that_does_not_exist() -> None:
    assert read(["", "x"]).target == Target(Kind.SCRIPT, "", ("x",))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-m", "-m needs a module to run"),
        ("-q -c", "-c needs code to run"),
        ("-qm", "-m needs a module to run"),
        ("-o", "option '-o' requires an argument"),
        ("-qo", "option '-o' requires an argument"),
        ("--output", "option '--output' requires an argument"),
        ("--quiet=yes a.py", "option '--quiet' does not take a value"),
        ("--intervall 5 a.py", r"no such option: --intervall \(did you mean --interval\?\)"),
        ("--out x a.py", "no such option: --out"),
        ("-x a.py", "no such option: -x"),
        ("-qx a.py", "no such option: -x"),
    ],
)
def test_a_line_that_cannot_be_read(line: str, words: str) -> None:
    with pytest.raises(Refused, match=f"^{words}.*; see 'tachograph record --help'$"):
        read(line.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--interval soon", "'soon' is not a number"),
        ("--interval nan", "nan ms is not between 1 and 1000 ms"),
        ("--sampler other", "'other' is not one of 'native', 'signal'"),
        ("--memory-threshold 1K", "1K is not between 64K and 1024G"),
        ("--rotate soon", "'soon' is neither a time"),
        ("--include=", "name a program"),
    ],
)
def test_a_value_that_an_option_refuses(line: str, words: str) -> None:
    with pytest.raises(Refused, match=f"^invalid value for '--.*': {words}.*; see 'tachograph record --help'$"):
        options(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--memory-threshold 1M --cpu-only", "of no use with --cpu-only"),
        ("--memory-threshold 1M --redundancy", "add --with-memory"),
        ("--memory-threshold 10485767 --sampler signal", "of no use with --sampler signal"),
        ("--budget 3 --cpu-only", "none are"),
        ("--budget 3 --redundancy", "none are"),
        ("--budget 3 --sampler signal", "none are"),
        ("--include x --sampler signal", "of no use with --sampler signal"),
        ("--exclude x --sampler signal", "of no use with --sampler signal"),
        ("--keep 10", "add --rotate"),
        ("--snapshot-signal USR1", "add --rotate"),
    ],
)
def test_options_that_do_not_go_together(line: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        options(line)


def test_values() -> None:
    assert options("") == Options()
    assert options("-o x.tacho --interval 2.5 -qf --start-paused --sampler signal") == Options(
        path="x.tacho", interval_ms=2.5, quiet=True, force=True, start_paused=True, sampler="signal"
    )
    assert options("--rotate 10m --keep 3 --snapshot-signal sigusr2") == Options(
        rotate=parse_rotate("10m"), keep=3, snapshot_signal=signal.SIGUSR2
    )
    assert options("--include a* --exclude b --include c,d:%") == Options(include=("a*", "c,d:%"), exclude=("b",))
    for told in (options("--budget 3"), options("--redundancy --with-memory --budget 3"), options("", {"budget": 3.0})):
        assert told.as_settings("setting")["budget"] == 30
    # The last one counts.
    assert options("--cpu-only --with-memory --no-gpu --gpu --interval 3 --interval 4") == Options(
        interval_ms=4, memory=True
    )
    assert options("--with-memory --cpu-only --no-sources --no-children") == Options(
        memory=False, sources=False, children=False
    )


def test_what_was_typed_counts_more_than_the_project() -> None:
    project = {"interval_ms": 5.0, "include": ("a",), "memory_threshold": 65536, "memory": True}
    assert options("--interval 6 --include b", project) == Options(
        interval_ms=6, include=("b",), memory_threshold=65536, memory=True
    )
    # What the project wants of memory or of processes is for recordings that have them.
    assert options("--cpu-only", project) == Options(interval_ms=5, include=("a",), memory=False)
    assert options("--sampler signal", project) == Options(interval_ms=5, sampler="signal", memory=True)


def test_what_the_manifest_and_the_program_are_told() -> None:
    assert Options().as_settings("manifest") == {
        "interval_ns": 10_000_000, "sampler": "native", "memory": True, "memory_threshold": 10_485_767, "sources": True,
        "start_paused": False, "children": True, "native_depth": 128, "native_lines": True, "redundancy": False,
    }  # fmt: skip
    assert Options().as_settings("setting") == {
        "interval_ns": 10_000_000, "sampler": "native", "memory": True, "threshold": 10_485_767, "paused": False,
        "children": True, "native_depth": 128,
    }  # fmt: skip
    full = options(
        "--cpu-only --native-depth 0 --include a --exclude b --rotate 1MB --start-paused --no-children --no-sources "
        "--no-native-lines"
    )
    assert full.as_settings("manifest") == {
        "interval_ns": 10_000_000, "sampler": "native", "memory": False, "sources": False, "start_paused": True,
        "children": False, "include": ["a"], "exclude": ["b"], "rotate": "1MB", "native_depth": 0,
        "native_lines": False, "redundancy": False,
    }  # fmt: skip
    assert full.as_settings("setting") == {
        "interval_ns": 10_000_000, "sampler": "native", "memory": False, "paused": True, "children": False,
        "include": ["a"], "exclude": ["b"], "native_depth": 0,
    }  # fmt: skip
    watched = options("--redundancy --accesses stores")
    assert [watched.as_settings("setting")[name] for name in ("interval_ns", "memory")] == [4_000_000, False]
    in_full = options("--redundancy --with-memory --interval 10")
    assert [in_full.as_settings("setting")[name] for name in ("interval_ns", "memory")] == [10_000_000, True]
    seeing = [each.sees_allocations for each in (in_full, watched, options("--cpu-only"))]
    assert seeing == [True, True, False]
    assert [watched.as_settings("manifest")[name] for name in ("redundancy", "accesses")] == [True, "stores"]
    assert watched.as_settings("setting")["accesses"] == "stores"
    assert Options(sampler="signal").as_settings("manifest")["memory"] is False
    assert Options(sampler="signal").as_settings("manifest")["native_depth"] == 0


def test_the_table_is_whole() -> None:
    """Each row reads its own default, no name is there twice, and a key is a long name."""
    names = [name for option in OPTIONS.values() for name in (*option.names, *option.off)]
    assert len(set(names)) == len(names)
    assert not set(HELP) & set(names)
    for name, each in fields_of(Options).items():
        option = OPTIONS[name]
        assert DEFAULTS[name] == each.default
        assert option.long.startswith("--")
        assert option.help.endswith(".")
        assert option.parse is not None or isinstance(each.default, bool) or option.off
        assert option.repeated == (each.default == ())
        if option.key:
            assert f"--{option.key}" in (*option.names, *option.off)
            assert (option.kind == FLAG) == (option.parse is None)
            assert (option.kind == LIST) == option.repeated
    assert options("--interval 10").as_settings("manifest") == options("").as_settings("manifest")
    assert options("--sampler native").sampler == DEFAULTS["sampler"]


def test_the_specification_names_what_the_manifest_is_told() -> None:
    text = (Path(__file__).parents[3] / "format-spec" / "SPEC.md").read_text(encoding="utf-8")
    section = text.partition("\n### Parameters\n")[2].partition("\n### ")[0]
    named = {name for row in re.findall(r"^\|([^|]*)\|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert {option.manifest for option in OPTIONS.values() if option.manifest} <= named


def test_click_shows_what_the_table_has() -> None:
    shown = {parameter.name: parameter for parameter in record.params}
    assert list(shown) == list(OPTIONS)
    for name, option in OPTIONS.items():
        assert {*shown[name].opts, *shown[name].secondary_opts} == {*option.names, *option.off}
    text = " ".join(record.get_help(click.Context(record)).split())
    assert "[default: 10485767]" in text
    assert "[default: 10]" in text

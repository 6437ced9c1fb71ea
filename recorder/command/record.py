"""What ``tachograph record`` does, once its command line is understood.

Until the program runs, only what starting it takes is imported: that time is added to every recorded run. A plain
command line is understood without click, which takes longer to import than all the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph.recorder.command.arguments import divide
from tachograph.recorder.command.memory_settings import DEFAULT_THRESHOLD, memory_parameters, parse_threshold
from tachograph.recorder.command.rotation_settings import DEFAULT_KEEP, Rotate, parse_keep, parse_rotate, parse_signal
from tachograph.recorder.command.support import check_support, preload_library
from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.problems import Refused

if TYPE_CHECKING:
    import _socket

    from tachograph.format import Manifest
    from tachograph.recorder.command.launch import Program

SHORTEST_MS, LONGEST_MS = 1.0, 1000.0
SAMPLERS = ("native", "signal")

_FLAGS = {
    "--cpu-only": ("cpu_only", True),
    "--with-memory": ("cpu_only", False),
    "--gpu": ("gpu", True),
    "--no-gpu": ("gpu", False),
    "--sources": ("sources", True),
    "--no-sources": ("sources", False),
    "--start-paused": ("start_paused", True),
    "--children": ("children", True),
    "--no-children": ("children", False),
    "-f": ("force", True),
    "--force": ("force", True),
    "-q": ("quiet", True),
    "--quiet": ("quiet", True),
}
_VALUES = {
    "-o": "path",
    "--output": "path",
    "--interval": "interval_ms",
    "--sampler": "sampler",
    "--memory-threshold": "memory_threshold",
    "--rotate": "rotate",
    "--keep": "keep",
    "--snapshot-signal": "snapshot_signal",
}
_PARSERS: dict[str, Callable[[str], Any]] = {
    "path": Path,
    "interval_ms": float,
    "memory_threshold": parse_threshold,
    "rotate": parse_rotate,
    "keep": parse_keep,
    "snapshot_signal": parse_signal,
}
_LISTS = {"--include": "include", "--exclude": "exclude"}


@dataclass(frozen=True)
class Options:
    """The options of ``record``; see its ``--help``. ``memory_threshold`` is in bytes, None if it was not given."""

    path: Path | None = None
    interval_ms: float = 10.0
    sampler: str = "native"
    cpu_only: bool = False
    memory_threshold: int | None = None
    gpu: bool = True
    sources: bool = True
    start_paused: bool = False
    force: bool = False
    quiet: bool = False
    children: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rotate: Rotate | None = None
    keep: int | None = None
    snapshot_signal: int | None = None


def plain_options(arguments: Sequence[str]) -> tuple[Options, Target] | None:
    """The options and the target of a command line in which nothing is unusual; None leaves it to click.

    Unusual are mistakes, ``--help``, ``--name=value`` and clusters of short options.
    """
    try:
        own, target = divide(arguments, frozenset([*_VALUES, *_LISTS]))
    except Refused:
        return None
    found = _found(own)
    if found is None:
        return None
    try:
        found |= {name: parse(found[name]) for name, parse in _PARSERS.items() if name in found}
    except ValueError:
        return None
    options = Options(**found)
    plain = SHORTEST_MS <= options.interval_ms <= LONGEST_MS and options.sampler in SAMPLERS and target is not None
    return (options, target) if plain and target is not None else None


def _found(own: Sequence[str]) -> dict[str, Any] | None:
    """The values of Options that are typed, as texts; None if that is unusual."""
    found: dict[str, Any] = {}
    rest = iter(own)
    for name in rest:
        if name in _FLAGS:
            key, value = _FLAGS[name]
            found[key] = value
            continue
        typed = next(rest, None)
        if typed is None:
            return None
        if name in _VALUES:
            found[_VALUES[name]] = typed
        elif name in _LISTS:
            found[_LISTS[name]] = (*found.get(_LISTS[name], ()), typed)
        else:
            return None
    return found


def run(options: Options, target: Target | None) -> None:
    """Record the program and end as it ends. Returns only by raising Refused, before the program was started."""
    if target is None:
        raise Refused("nothing to record: name a script, a command, -m MODULE or -c CODE")
    check_memory(options)
    check_tree(options)
    check_rotation(options)
    check_support(options.sampler)
    target = target.resolved()
    program, arguments = target.invocation(sys.orig_argv)
    # Not before: where recording is not supported, these modules may not even be imported.
    from tachograph.recorder.collect import output
    from tachograph.recorder.command import launch
    from tachograph.recorder.command.manifests import new_manifest

    memory = options.sampler == "native" and not options.cpu_only
    threshold = options.memory_threshold or DEFAULT_THRESHOLD
    mask = launch.hold_signals()
    parameters: dict[str, Any] = {
        "sampler": options.sampler,
        "interval_ns": round(options.interval_ms * 1e6),
        "waits": options.sampler == "native",
        **({"schedule": "stationary"} if options.sampler == "native" else {}),
        **memory_parameters(memory, threshold),
        "sources": options.sources,
        "start_paused": options.start_paused,
        "segment_size": output.SEGMENT_SIZE,
        "children": options.children,
        **({"include": list(options.include)} if options.include else {}),
        **({"exclude": list(options.exclude)} if options.exclude else {}),
        **({"rotate": options.rotate.typed} if options.rotate else {}),
    }
    manifest = new_manifest(parameters)
    if options.path is None:
        path, spool = output.claim_numbered(target.recording_stem(), manifest)
    else:
        path, spool = options.path, output.claim(options.path, manifest, force=options.force)
    listening = None
    # Only root's recordings have processes that become other users or call chroot.
    if options.sampler == "native" and os.geteuid() == 0:
        from tachograph.recorder.fd_broker.socket_name import listen

        listening = listen()
    settings = launch.Settings(
        spool=spool,
        sampler=options.sampler,
        interval_ns=parameters["interval_ns"],
        paused=options.start_paused,
        segment_size=output.SEGMENT_SIZE,
        memory=memory,
        memory_threshold=threshold,
        preload=preload_library(memory=memory) if options.sampler == "native" else None,
        children=options.children,
        include=options.include,
        exclude=options.exclude,
        rotates=options.rotate is not None,
        provider=None if listening is None else listening[0],
    )
    try:
        output.probe(spool)
        number = launch.interrupted()
        if number is None:
            started = launch.start(program, arguments, settings.environment(os.environ), mask)
    except Refused:
        output.discard(path)
        raise
    if number is not None:
        output.discard(path)
        launch.end_like(-number)
    _accompany(path, started, target, manifest, options, None if listening is None else listening[1])


def check_memory(options: Options) -> None:
    """Refuse a threshold for memory that is not going to be recorded."""
    if options.memory_threshold is None:
        return
    if options.cpu_only:
        raise Refused("--memory-threshold is of no use with --cpu-only, which records no memory: leave one of them out")
    if options.sampler != "native":
        raise Refused("--memory-threshold is of no use with --sampler signal, which records no memory: leave it out")


def check_tree(options: Options) -> None:
    """Refuse choices of processes where only one can be recorded, and empty patterns."""
    if "" in (*options.include, *options.exclude):
        raise Refused(
            "--include and --exclude want the name of a program, such as worker.py, or a pattern, such as work*"
        )
    if options.sampler != "native" and (options.include or options.exclude):
        raise Refused("--include and --exclude are of no use with --sampler signal, which records one process")


def check_rotation(options: Options) -> None:
    """Refuse what concerns windows where there is one only."""
    if options.rotate is not None:
        return
    if options.keep is not None:
        raise Refused("--keep says how many windows of --rotate are kept: add --rotate 10m, for example")
    if options.snapshot_signal is not None:
        raise Refused("--snapshot-signal keeps windows of --rotate: add --rotate 10m, for example")


def _accompany(
    path: Path, program: Program, target: Target, manifest: Manifest, options: Options, listener: _socket.socket | None
) -> None:
    """Stay with the program until its end, finish the recording, and end in the same way. Does not return."""
    from tachograph.recorder.command import launch
    from tachograph.recorder.command.session import Session
    from tachograph.recorder.command.summary import say, summary

    code = target.what if target.kind is Kind.CODE else None
    keep = DEFAULT_KEEP if options.keep is None else options.keep
    session = Session(
        path.absolute(),
        program,
        manifest,
        target.command(),
        code,
        gpu=options.gpu,
        rotate=options.rotate,
        keep=keep,
        listener=listener,
    )
    session.begin()
    own: dict[int, Callable[[], None]] = {}
    if options.snapshot_signal is not None:
        own[options.snapshot_signal] = session.snapshot
    watch = launch.Watch(program.pid, own, at_end=session.note_end, spares=session.owns)
    status = launch.exit_status(watch.until_end())
    launch.release_signals()
    try:
        outcome = session.end(status)
        if not options.quiet or outcome.unfinished or outcome.not_recorded:
            say(summary(target.title(), path, outcome))
    finally:
        # Even a mistake of ours (shown in full, for a report) must not change what the program's caller sees.
        if sys.exc_info()[1] is not None:
            import traceback

            traceback.print_exc()
        launch.end_like(status)

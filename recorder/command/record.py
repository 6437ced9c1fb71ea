"""Runs ``tachograph record``, once its command line is parsed.

Until the program runs, only what starting it takes is imported: that time is added to every recorded run.
"""

from __future__ import annotations

import os
import sys

from tachograph.format.plain_records import record_class
from tachograph.recorder.command.executables import gets_other_rights, why_left_alone
from tachograph.recorder.command.options import Options
from tachograph.recorder.command.support import check_support, preload_library
from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.labels.labels import Labels, gather_labels
from tachograph.recorder.problems import Refused
from tachograph.recorder.rotation.rotation_settings import DEFAULT_KEEP
from tachograph.recorder.upload.destination import Destination, check_installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from pathlib import Path

    from tachograph.format import Manifest
    from tachograph.recorder.collect.held_folder import HeldFolder
    from tachograph.recorder.command.launch import Program
    from tachograph.recorder.command.session import Outcome

    After = Callable[[Path, Outcome, int], int]
    """Is told the path of a recording, how it ended, and the exit status (negative: of that signal)."""


@record_class
class _Prepared:
    """What is made before the program is started: the folder at ``path``, and what RecordingPlan says of the others."""

    path: str
    folder: HeldFolder
    manifest: Manifest
    labels: Labels
    listener: _socket.socket | None
    log: int | None


def run(options: Options, target: Target | None, after: After | None = None) -> None:
    """Record the program and end as it ends. Returns only by raising Refused, before the program was started.

    ``after`` is called when the recording is finished; what it returns is the exit status.
    """
    if target is None:
        raise Refused("nothing to record: name a script, a command, -m MODULE or -c CODE")
    check_support(options.sampler, redundancy=options.redundancy)
    if isinstance(options.path, Destination):
        check_installed(options.path)
    target = target.resolved()
    labels = gather_labels(options.labels, os.environ, target.folders())
    program, arguments = target.invocation(sys.orig_argv)
    # Not before: where recording is not supported, these modules may not even be imported.
    from tachograph.recorder.collect import output
    from tachograph.recorder.command import launch
    from tachograph.recorder.command.manifests import manifest_parameters, new_manifest

    native = options.sampler == "native"
    mask, ignored = launch.hold_signals(), launch.ignored_of_glibc()
    parameters = manifest_parameters(options, output.SEGMENT_SIZE)
    manifest = new_manifest(parameters)
    if options.path is None or isinstance(options.path, Destination):  # what is sent to a store is made here first
        path, folder = output.claim_numbered(target.recording_stem(), manifest)
    else:
        path, folder = options.path, output.claim(options.path, manifest, force=options.force)
    broker = log = None
    if native:
        from tachograph.recorder.fd_broker.socket_name import listen, open_log, overcommits, place_of_log

        broker, log = listen(), open_log()
    settings = launch.Settings(
        output.spool_of(folder),
        {
            **options.as_settings("setting"),
            "waits": native,
            "rotate": options.rotate is not None,
            "segment": output.SEGMENT_SIZE,
            "owner": os.geteuid(),
            "place": output.place_of_spool(folder),
            **({"ignored": ignored} if native and ignored else {}),
            **({} if broker is None or overcommits() else {"memory_at_once": True}),
            **({} if log is None else {"log": place_of_log(log)}),
        },
        preload=preload_library(allocations=options.sees_allocations) if native else None,
        broker=None if broker is None else broker[0],
    )
    try:
        output.probe(folder)
        number = launch.interrupted()
        if number is None:
            alone = _is_left_alone(program, native=native)
            environment = dict(os.environ) if alone else settings.environment(os.environ)
            started = launch.start(program, arguments, environment, mask)
    except Refused:
        output.discard(folder)
        raise
    if number is not None:
        output.discard(folder)
        launch.end_like(-number)
    prepared = _Prepared(path, folder, manifest, labels, None if broker is None else broker[1], log)
    _accompany(prepared, started, target, options, after)


def present_path(path: Path, folder: HeldFolder) -> Path:
    """Where the recording is at its end. If another folder has its name by now, that is said."""
    from tachograph.recorder.command.messages import say

    if folder.has_its_name():
        return path
    place = folder.present_path()
    if place is None:
        say(f"{path} was removed while it was recorded, or another folder has its name")
        return path
    say(f"{path} was renamed while it was recorded: the recording is in {place}")
    return type(path)(place)


def _is_left_alone(program: str, *, native: bool) -> bool:
    return gets_other_rights(program) if not native else why_left_alone(program, os.environ) is not None


def _accompany(prepared: _Prepared, program: Program, target: Target, options: Options, after: After | None) -> None:
    """Stay with the program until its end, finish the recording, and end in the same way. Does not return."""
    from pathlib import Path

    from tachograph.recorder.command import launch
    from tachograph.recorder.command.messages import say, summary
    from tachograph.recorder.command.session import RecordingPlan, Session, leave_unneeded_out

    path, folder = Path(prepared.path), prepared.folder
    leave_unneeded_out(unless=after is not None)  # what reads a recording needs it
    code = target.what if target.kind == Kind.CODE else None
    keep = DEFAULT_KEEP if options.keep is None else options.keep
    uploads = None
    if isinstance(options.path, Destination):
        from tachograph.recorder.upload.sender import Sender, Uploads

        uploads = Uploads(Sender(options.path, target.recording_stem(), force=options.force))
    plan = RecordingPlan(
        folder,
        prepared.manifest,
        program,
        target.command(),
        code,
        labels=prepared.labels,
        listener=prepared.listener,
        log=prepared.log,
        gpu=options.gpu,
        rotate=options.rotate,
        keep=keep,
        uploads=uploads,
    )
    session = Session(plan)
    session.begin()
    own: dict[int, Callable[[], None]] = {}
    if options.snapshot_signal is not None:
        own[options.snapshot_signal] = session.snapshot
    watch = launch.Watch(
        program.pid, own, at_end=session.note_end, ignores=session.is_helper, orphan_ended=session.note_orphan
    )
    status = ended = watch.until_end()
    launch.release_signals()
    try:
        outcome = session.end(status, watch.ended)
        path = present_path(path, folder)
        delivery = None
        if uploads is not None:
            if after is not None:  # it reads the recording, which will not be here any more
                status, after = after(path, outcome, status), None
            delivery = uploads.finish(None if outcome.unfinished else path)
        if not options.quiet or outcome.unfinished or outcome.not_recorded or (delivery and delivery.left):
            say(summary(target.title(), path, outcome, ended, delivery))
        if after is not None:
            status = after(path, outcome, status)
    except BaseException:
        if after is not None and status == 0:
            status = 1  # what was to be judged was not
        raise
    finally:
        # Even a mistake of ours (shown in full, for a report) must not change what the program's caller sees.
        if sys.exc_info()[1] is not None:
            import traceback

            traceback.print_exc()
        launch.end_like(status)

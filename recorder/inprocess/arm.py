"""Arms the recorder inside the profiled process, before the program's first line.

``tachograph.pth`` calls :func:`at_start` at interpreter start when a recording is on. Whatever goes wrong
here, the program must run as if nothing had been there: the reason is left in the spool (``arm-error.txt``) for the
recording command to print. Only the standard library and our own extension module are imported in this process.
"""

import os
import sys

from tachograph.recorder import loaded
from tachograph.recorder.inprocess.configuration import Configuration, take_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    Item = TypeVar("Item")

ASK, TAKE, DECLINE = 0x54414348, 0x54414349, 0x5441434A
"""Numbers of errors that are none: os.strerror of them is answered by the preloaded library."""

ERROR_FILE = "arm-error.txt"


def at_start(begin: "Callable[[Configuration], None] | None" = None) -> None:
    """Start recording as the command said, through the preloaded library or, without it, in the environment.

    ``begin`` is called with the settings; None is :func:`start`.
    """
    if os.strerror(ASK) == "tachograph":
        spool, _, text = os.strerror(TAKE).rpartition("\n")
        config = Configuration(spool, text)
    else:
        from tachograph.recorder.inprocess.other_rights import has_other_rights

        config = take_from(os.environ)
        if has_other_rights():
            return  # the library is not loaded there, and judges in the same way (settings.cpp)
    if not is_chosen(config):
        from tachograph.recorder.inprocess.refusal import note_refusal
        from tachograph.recorder.inprocess.spool_layout import REFUSAL_EXCLUDED

        note_refusal(config.spool, REFUSAL_EXCLUDED, "excluded by --include and --exclude", config.log, config.place)
        os.strerror(DECLINE)
        return
    try:
        (begin or start)(config)
    # The last two: the package was replaced while the program ran, and its files are of two versions.
    except (OSError, RuntimeError, ImportError, ValueError, KeyError, TypeError, AttributeError) as error:
        leave_reason(config.spool, error, config.log, config.place)
        os.strerror(DECLINE)


def is_chosen(config: Configuration) -> bool:
    """True if this process is to be recorded, by the name of its program."""
    if not config.include and not config.exclude:
        return True
    from tachograph.recorder.inprocess.process_filter import passes_filter

    return passes_filter(config.include, config.exclude, sys.orig_argv)


def start(config: Configuration, *, lasting: bool = True) -> None:
    """Start the sampler that ``config`` names and tell the recording what runs here.

    ``lasting``: until the interpreter ends; else it is ended before.
    Raises OSError, RuntimeError, ImportError, ValueError or KeyError with one line of text if it cannot.
    """
    facts = facts_of_interpreter(config)
    if config.sampler == "signal":
        from tachograph.recorder.inprocess import signal_sampler

        signal_sampler.arm(config, facts)
        return
    import atexit

    from tachograph.recorder._native import arm, exiting, meta, watch_calls
    from tachograph.recorder.inprocess.cell_texts import write_cells

    arm()
    # The first of all: so it runs after the program's own functions, where the program's own part ends.
    if lasting:
        # Its functions are found now: a program may have taken modules and paths away by then.
        atexit.register(at_exit, exiting, meta, lambda: write_cells(config.spool, config.place))
    for key, value in facts.items():
        meta(key, value)
    meta("spans_followed", "1")
    watch_calls()  # where it is asked for and not possible, the recording's ledger says so


def at_exit(exiting: "Callable[[], None]", meta: "Callable[[str, str], None]", cells: "Callable[[], None]") -> None:
    """Tell that the interpreter's own end begins, and what could not be known when it started.

    ``cells`` writes the texts that no file has.
    """
    cells()
    jit = getattr(sys, "_jit", None)
    if jit is not None:
        meta("jit", "1" if jit.is_enabled() else "0")
    live = pyarrow_live_bytes()
    if live is not None:
        meta("pyarrow_live_bytes", str(live))
    exiting()


def pyarrow_live_bytes() -> "int | None":
    """What pyarrow's pools with an allocator of their own hold, by its own statistics; None where they are not known.

    Their allocators keep pages that are free, and there is no other way to tell these from those in use. Each pool is
    asked, as a program may use others than the default one.
    """
    lib = sys.modules.get("pyarrow.lib")
    if type(lib) is not type(sys):
        return None
    live, known = 0, False
    for name in ("mimalloc", "jemalloc"):
        pool = getattr(lib, f"{name}_memory_pool", None)
        try:
            held = pool().bytes_allocated() if callable(pool) else None
        except Exception:  # noqa: BLE001  # not built with it, or whatever a library does at the program's end
            continue
        if type(held) is int and held >= 0:
            live, known = live + held, True
    return live if known else None


def facts_of_interpreter(config: Configuration) -> dict[str, str]:
    """Metadata for the recording: this interpreter, and how it is sampled."""
    interval_ns = config.interval_ns
    facts = {
        "executable": sys.executable or "",
        "implementation": sys.implementation.name,
        "python_version": python_version(),
        "sampler": config.sampler,
        "interval_ns": str(interval_ns),
    }
    jit = jit_is_on()
    if jit is not None:
        facts["jit"] = "1" if jit else "0"
    return facts


def jit_is_on() -> "bool | None":
    """True if CPython's own JIT compiler will be on: it is not yet, while the interpreter starts.

    None where a default of the build decides: then it is known at the end (``at_exit``), and never of 3.13, whose JIT
    has no Python interface.
    """
    jit = getattr(sys, "_jit", None)  # since 3.14
    if jit is None:
        return None if sys.hexversion >> 16 == 0x030D else False
    setting = os.environ.get("PYTHON_JIT")
    return (
        False if not jit.is_available() else None if setting is None or sys.flags.ignore_environment else setting != "0"
    )


def python_version() -> str:
    """The interpreter's version, such as ``3.13.0`` or ``3.15.0a2``."""
    v = sys.version_info
    level = {"alpha": "a", "beta": "b", "candidate": "rc"}.get(v.releaselevel)
    return f"{v.major}.{v.minor}.{v.micro}" + (f"{level}{v.serial}" if level else "")


def leave_reason(spool: str, error: Exception, log: str = "", place: str = "") -> None:
    """Write into the spool why the process is not recorded (one line); never fails."""
    from tachograph.recorder.inprocess.refusal import is_the_spool, note_refusal
    from tachograph.recorder.inprocess.spool_layout import REFUSAL_FAILED

    text = " ".join(f"{error}".split()) or type(error).__name__
    note_refusal(spool, REFUSAL_FAILED, text, log, place)
    try:
        if not is_the_spool(spool, place):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(f"{spool}/{ERROR_FILE}", flags, 0o600)
    except OSError:
        return  # a second failing process of the recording, or a full disk: the recording command says what it knows
    try:
        os.write(descriptor, text.encode("utf-8", "replace"))
    except OSError:
        pass
    finally:
        os.close(descriptor)


def pause() -> None:
    """Pause whichever sampler is running; nothing if none is."""
    _switch("pause")


def resume() -> None:
    """Resume whichever sampler is running; nothing if none is."""
    _switch("resume")


def span_writer() -> "Callable[[str, str, int, int, int, int], None] | None":
    """A function that writes a span: name, fields, start_ns, end_ns, number, parent. None if nothing records."""
    native = loaded("tachograph.recorder._native")
    if native is not None and native.active():
        return native.span  # type: ignore[no-any-return]  # a module found by name has no types
    module = loaded("tachograph.recorder.inprocess.signal_sampler")
    sampler = None if module is None else module.running()
    return None if sampler is None else sampler.span


def loop_marker() -> "Callable[[Iterable[Item]], Iterator[Item]] | None":
    """A function that iterates over a marked loop and has calls watched meanwhile. None if none can be watched."""
    native = loaded("tachograph.recorder._native")
    return native.mark_loop if native is not None and native.active() else None


def snapshot() -> bool:
    """Ask whichever sampler is running for a snapshot; True if one is taken."""
    return bool(_switch("snapshot"))


def _switch(what: str) -> object:
    native = loaded("tachograph.recorder._native")
    if native is not None and native.active():
        return getattr(native, what)()
    module = loaded("tachograph.recorder.inprocess.signal_sampler")
    sampler = None if module is None else module.running()
    return None if sampler is None else getattr(sampler, what)()

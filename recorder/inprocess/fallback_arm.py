"""Arms an interpreter in which ``tachograph.pth`` has not run: under ``python -S``, in another virtual environment.

The preloaded library runs this file in the interpreter, by its path, just before the program's first line. It must be
Python that every version from 3.9 on understands; nothing is looked for on the program's path.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tachograph.recorder.inprocess.configuration import Configuration

PACKAGE = "tachograph"


def begin(
    home: str,
    beside: str,
    record_natively: "Callable[[str], int]",
    before_fork: "Callable[[], object]",
    after_fork_in_parent: "Callable[[], object]",
    after_fork_in_child: "Callable[[], object]",
) -> None:
    """Start recording.

    ``home`` is the folder of the recorder package, ``beside`` that of the preloaded library and the extension module;
    both are one where the package is installed in the ordinary way. The functions are the library's: where the
    extension module does not fit this interpreter, it records without Python stacks.
    """
    fits = has_fitting_extension(beside)
    names = frozenset(sys.modules)
    writes = sys.dont_write_bytecode
    # Only the interpreter that the package was installed for leaves its .pyc files there.
    sys.dont_write_bytecode = True
    try:
        arm = load_arm(home, beside)
    finally:
        sys.dont_write_bytecode = writes

    def natively(config: "Configuration") -> None:
        facts = {**arm.facts_of_interpreter(config), "recorded": "native"}
        if record_natively("\n".join("{}={}".format(*fact) for fact in facts.items() if "\n" not in fact[1])) != 1:
            raise RuntimeError("the preloaded library could not record without the extension module")
        from posix import register_at_fork

        register_at_fork(before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=after_fork_in_child)

    arm.at_start(None if fits else natively)
    # The program imports for itself what it needs. Without our extension it has no tachograph, or another one.
    for name in sys.modules.keys() - names:
        if not (fits and name.partition(".")[0] == PACKAGE):
            del sys.modules[name]


def has_fitting_extension(folder: str) -> bool:
    """True if ``folder`` has an extension module that this interpreter can load."""
    from _imp import extension_suffixes
    from posix import stat

    for suffix in extension_suffixes():
        try:
            stat(f"{folder}/_native{suffix}")
        except OSError:
            continue
        return True
    return False


def load_arm(home: str, beside: str) -> "ModuleType":
    """Our module of this name, without a look at :data:`sys.path`."""
    loaded = sys.modules.get(f"{PACKAGE}.recorder.inprocess.arm")
    if loaded is not None:
        return loaded
    from _frozen_importlib import ModuleSpec, _load  # type: ignore[attr-defined]  # not in the stubs
    from _frozen_importlib_external import spec_from_file_location

    if PACKAGE not in sys.modules:
        top = ModuleSpec(PACKAGE, None, is_package=True)
        top.submodule_search_locations = [folder.rpartition("/")[0] for folder in (beside, home)]
        _load(top)
    _load(
        spec_from_file_location(f"{PACKAGE}.recorder", f"{home}/__init__.py", submodule_search_locations=[beside, home])
    )
    from tachograph.recorder.inprocess import arm

    return arm

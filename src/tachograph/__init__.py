"""tachograph: record a Python program where it runs, read the recording anywhere else.

pytest would warn that it cannot rewrite this module, which a recorded interpreter imports first: PYTEST_DONT_REWRITE
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """``%load_ext tachograph``: the magics of notebooks (docs/how-to/profile-a-notebook.md)."""
    _notebook().load(shell)


def unload_ipython_extension(shell: object) -> None:
    """``%unload_ext tachograph``: all that the magics hold is given back."""
    _notebook().unload(shell)


def _notebook() -> "ModuleType":
    from importlib import import_module

    # By its name: it stands above the recorder, whose modules begin with importing this one.
    return import_module("tachograph.notebook.extension")

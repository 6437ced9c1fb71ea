"""The settings of this process as Python code needs them: which processes are recorded, and the signal sampler's.

The native library reads the others itself (native/shim/spool/settings.cpp). All keys are in
``recorder/command/settings.py``. Standard library only, of every Python from 3.9 on.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

SPOOL = "TACHOGRAPH_SPOOL"
CONFIG = "TACHOGRAPH_CONFIG"
PARENT = "TACHOGRAPH_PARENT"


class Configuration:
    """The path of the spool, and the settings by key, as texts.

    Reading one raises KeyError or ValueError where it is missing or malformed.
    """

    __slots__ = ("spool", "values")

    def __init__(self, spool: str, text: str) -> None:
        self.spool = spool
        self.values = {key: value for key, _, value in (item.partition("=") for item in text.split(",") if item)}

    @property
    def interval_ns(self) -> int:
        """CPU time between two samples."""
        return int(self.values["interval_ns"])

    @property
    def segment_size(self) -> int:
        """Bytes of a segment of the spool."""
        return int(self.values["segment"])

    @property
    def sampler(self) -> str:
        """``native`` or ``signal``."""
        return self.values["sampler"]

    @property
    def paused(self) -> bool:
        """True if recording begins paused."""
        return self.values["paused"] == "1"

    @property
    def children(self) -> bool:
        """True if forked processes are recorded, too."""
        return self.values.get("children") != "0"

    @property
    def rotates(self) -> bool:
        """True if the recording command deletes old windows, so that a snapshot makes sense."""
        return self.values.get("rotate") == "1"

    @property
    def include(self) -> str:
        """Patterns of programs that are recorded; empty: all are."""
        return self.values.get("include", "")

    @property
    def exclude(self) -> str:
        """Patterns of programs that are not recorded."""
        return self.values.get("exclude", "")

    @property
    def log(self) -> str:
        """Path and identity of the process log in memory, or empty."""
        return self.values.get("log", "")

    @property
    def place(self) -> str:
        """Identity of the spool's folder, or empty."""
        return self.values.get("place", "")


def take_from(environ: "MutableMapping[str, str]") -> Configuration:
    """Remove our variables from ``environ``; what they said."""
    environ.pop(PARENT, None)
    return Configuration(environ.pop(SPOOL), environ.pop(CONFIG, ""))

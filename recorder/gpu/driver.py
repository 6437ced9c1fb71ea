"""The interface between the GPU sampler and the drivers of vendors, each of which is one module.

A new vendor is a module with a function like nvidia.open_driver, named in ``open_driver`` here. What a driver does not
tell is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class UnreadError(Exception):
    """There is a driver, and it cannot be asked; the message is the reason in a few words."""


class Busy(NamedTuple):
    """The load of a GPU or process in percent, up to a moment of the driver's clock (µs since 1970); None: unknown."""

    until_us: int
    busy: int
    memory_busy: int | None


class Use(NamedTuple):
    """A process that holds memory of a GPU; None where the driver does not say how much."""

    pid: int
    memory_bytes: int | None


class Memory(NamedTuple):
    """A GPU's memory."""

    used_bytes: int
    total_bytes: int


class Rates(NamedTuple):
    """The load of a GPU in percent: its processors, and its transfers of memory."""

    busy: int
    memory_busy: int


class Device(Protocol):
    """One GPU; ``index`` is the driver's number of it."""

    index: int

    @property
    def failures(self) -> int:
        """Questions that should have had an answer, and had none."""
        ...

    def name(self) -> str:
        """The product's name."""
        ...

    def uuid(self) -> str:
        """The driver's name of this one device."""
        ...

    def memory(self) -> Memory | None:
        """Its memory."""
        ...

    def rates(self) -> Rates | None:
        """The present load."""
        ...

    def power_mw(self) -> int | None:
        """Power that is drawn, mW."""
        ...

    def temperature_c(self) -> int | None:
        """Degrees Celsius."""
        ...

    def uses(self) -> list[Use] | None:
        """The processes that hold memory of it."""
        ...

    def samples(self, after_us: int) -> list[Busy]:
        """The load since then, in the order of time."""
        ...

    def process_samples(self, after_us: int, pids: Sequence[int]) -> list[tuple[int, Busy]]:
        """The load by each of these processes since then."""
        ...

    def tells_busy(self) -> bool:
        """True if it says how busy it is."""
        ...


class Driver(Protocol):
    """A driver, ready to be asked."""

    version: str

    @property
    def devices(self) -> Sequence[Device]:
        """The GPUs, in the driver's order."""
        ...


def open_driver() -> Driver | None:
    """The driver of this machine, None if there is none.

    Raises UnreadError if there is one that cannot be asked.
    """
    from tachograph.recorder.gpu import nvidia

    return nvidia.open_driver()

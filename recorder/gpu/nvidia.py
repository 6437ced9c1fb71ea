"""Asks NVIDIA's driver, through the package nvidia-ml-py, whose module is ``pynvml``.

The driver answers "not supported" to much, depending on the product, its mode and who asks: what it does not tell is
None here, and it is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tachograph.recorder.gpu.driver import Busy, Memory, Rates, UnreadError, Use

LIBRARY = "libnvidia-ml.so.1"
"""Comes with the driver; where it cannot be loaded there is none."""

PATIENCE = 20
"""Failures of one question, one after the other, after which it is not asked again: a GPU may have been lost."""

WHOLE_PERCENT = 100


def open_driver() -> Driver | None:
    """The driver of this machine, None if there is none.

    Raises UnreadError if there is one that cannot be asked.
    """
    import ctypes

    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    try:
        import pynvml
    except ImportError:
        raise UnreadError("the package nvidia-ml-py is not installed here (pip install nvidia-ml-py)") from None
    try:
        pynvml.nvmlInit()
        return Driver(pynvml)
    except pynvml.NVMLError as error:
        raise UnreadError(str(error)) from None


class Driver:
    """The driver, ready to be asked. Raises the package's error if it does not tell how many GPUs there are."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        general = Questions(nvml, ())
        version = general.ask("nvmlSystemGetDriverVersion")
        self.version = "" if version is None else str(version)
        self.devices = [
            Device(index, Questions(nvml, (handle,)))
            for index in range(nvml.nvmlDeviceGetCount())
            if (handle := general.ask("nvmlDeviceGetHandleByIndex", index)) is not None
        ]


@dataclass
class Questions:
    """Functions of the package with their first arguments; ``failures`` counts answers that did not come."""

    nvml: Any
    first: tuple[Any, ...]
    failures: int = 0
    _refused: set[str] = field(default_factory=set)
    _in_a_row: dict[str, int] = field(default_factory=dict)

    def ask(self, question: str, *arguments: Any, version: str = "") -> Any:
        """The answer, or None; ``version`` tells questions apart that go to one function."""
        called = question + version
        if called in self._refused:
            return None
        try:
            answer = getattr(self.nvml, question)(*self.first, *arguments)
        except AttributeError:  # an older nvidia-ml-py
            self._refused.add(called)
            return None
        except self.nvml.NVMLError as error:
            self._note(called, error.value)
            return None
        self._in_a_row.pop(called, None)
        return answer

    def refused(self, question: str) -> bool:
        """True if the question is not asked any more."""
        return question in self._refused

    def _note(self, question: str, code: int) -> None:
        nvml = self.nvml
        if code in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION):
            self._refused.add(question)
        elif code not in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INSUFFICIENT_SIZE):
            # Those two mean that nothing happened since, or that more happened while it was asked.
            self.failures += 1
            self._in_a_row[question] = self._in_a_row.get(question, 0) + 1
            if self._in_a_row[question] >= PATIENCE:
                self._refused.add(question)


class Device:
    """One GPU."""

    def __init__(self, index: int, questions: Questions) -> None:
        self.index = index
        self._questions = questions
        self._ask = questions.ask
        self._nvml = questions.nvml

    @property
    def failures(self) -> int:
        """Questions that should have had an answer, and had none."""
        return self._questions.failures

    def name(self) -> str:
        """The product's name, empty if unknown."""
        return str(self._ask("nvmlDeviceGetName") or "")

    def uuid(self) -> str:
        """The driver's unique name, empty if unknown."""
        return str(self._ask("nvmlDeviceGetUUID") or "")

    def memory(self) -> Memory | None:
        """Its memory; older drivers count what they keep for themselves as used."""
        second = getattr(self._nvml, "nvmlMemory_v2", None)
        answer = None if second is None else self._ask("nvmlDeviceGetMemoryInfo", second, version=" 2")
        answer = self._ask("nvmlDeviceGetMemoryInfo") if answer is None else answer
        return None if answer is None else Memory(int(answer.used), int(answer.total))

    def rates(self) -> Rates | None:
        """Percent of the driver's last period in which a kernel ran, and in which memory was read or written."""
        answer = self._ask("nvmlDeviceGetUtilizationRates")
        if answer is None or not _percents(answer.gpu, answer.memory):
            return None
        return Rates(answer.gpu, answer.memory)

    def power_mw(self) -> int | None:
        """Electrical power in milliwatts."""
        answer = self._ask("nvmlDeviceGetPowerUsage")
        return None if answer is None else int(answer)

    def temperature_c(self) -> int | None:
        """Temperature of the chip in degrees Celsius."""
        answer = self._ask("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU)
        return None if answer is None else int(answer)

    def uses(self) -> list[Use] | None:
        """The processes that hold memory, None if the driver does not tell."""
        memory_of: dict[int, int | None] = {}
        answers = [self._ask(f"nvmlDeviceGet{kind}RunningProcesses") for kind in ("Compute", "MPSCompute")]
        if answers[0] is None:
            return None
        for process in (process for answer in answers if answer is not None for process in answer):
            memory = process.usedGpuMemory
            memory_of[int(process.pid)] = None if memory is None else int(memory)
        return [Use(pid, memory) for pid, memory in memory_of.items()]

    def samples(self, after_us: int) -> list[Busy]:
        """The driver's own samples of how busy the GPU was, those that are later than ``after_us``, in their order."""
        answer = self._ask("nvmlDeviceGetSamples", self._nvml.NVML_GPU_UTILIZATION_SAMPLES, after_us)
        _, samples = answer or (0, ())
        loads = [Busy(int(each.timeStamp), int(each.sampleValue.uiVal), None) for each in samples]
        return sorted(each for each in loads if each.until_us > after_us and _percents(each.busy))

    def process_samples(self, after_us: int, pids: Sequence[int]) -> list[tuple[int, Busy]]:
        """The load by some processes since ``after_us``; processes that did not use the GPU are left out.

        The driver fills up its answer with entries that are not processes, and with percentages beyond 100.
        """
        answer = self._ask("nvmlDeviceGetProcessUtilization", after_us) or ()
        latest: dict[int, Busy] = {}
        for each in answer:
            busy = Busy(int(each.timeStamp), int(each.smUtil), int(each.memUtil))
            sound = each.pid in pids and busy.until_us > after_us and _percents(busy.busy, each.memUtil)
            if sound and (each.pid not in latest or busy > latest[each.pid]):
                latest[int(each.pid)] = busy
        return list(latest.items())

    def tells_busy(self) -> bool:
        """True if the driver tells how busy the GPU is, as far as it has been asked."""
        return not all(map(self._questions.refused, ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetSamples")))


def _percents(*values: int) -> bool:
    return all(0 <= value <= WHOLE_PERCENT for value in values)

"""The thread that reads the GPUs beside the program, a few times a second."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tachograph.recorder import clock
from tachograph.recorder.gpu.driver import Device, Driver, UnreadError, open_driver
from tachograph.recorder.gpu.spool import GpuSpool, Reading

INTERVAL_S = 0.1
"""The driver's own periods are no shorter (NVML says 1/6 s to 1 s); memory and power are read this often."""

MOST_OF_A_PROCESSOR = 0.02
"""Where asking takes longer than this part of the time, it is done less often."""

LEAST_PAUSE_S = 0.01

QUIET_START_S = 0.1
"""The program is starting up as well; nothing is done if it ends before."""

PATIENCE_S = 0.25
"""At the end, how long an answer of the driver is waited for."""

LONGEST_SAMPLE_US = 1_000_000
"""The driver keeps samples for longer than they stand for: one that follows the last by more has no beginning."""

OLDEST_SAMPLE_US = 60_000_000


LOOK_AGAIN_S = 0.5
"""How often the spool is asked at most which processes are recorded."""


class Told(NamedTuple):
    """The recording's notes about GPUs: whether they were read, and remarks for the reader."""

    recorded: bool
    notes: list[str]


class GpuSampler:
    """Reads the GPUs until it is stopped. Where there is no driver it does nothing, and nothing is imported.

    A driver may take seconds to answer, or never do so: nothing waits for it, neither the program nor, for long, its
    end.
    """

    def __init__(self, spool: Path, open_: Callable[[], Driver | None] = open_driver) -> None:
        self._open = open_
        self._files = GpuSpool(spool)
        self._pids = RecordedPids(spool)
        self._done, self._over = clock.Flag(), clock.Flag()
        self._writing = threading.Lock()
        self._readers: list[DeviceReader] = []
        self._notes: list[str] = []
        self._ready = self._ended = False
        self._thread = threading.Thread(target=self._run, name="tachograph GPU", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    @property
    def recorded(self) -> bool:
        """True if GPUs are being read."""
        return bool(self._readers)

    def turn(self) -> int:
        """Begin another segment, so that those before it can be taken away; its number."""
        with self._writing:
            number = self._files.next_segment
            if self._readers and not self._ended:
                try:
                    self._files.turn()
                except OSError as error:
                    self._notes.append(f"the readings of the GPUs end early: {error.strerror or error}")
            return number

    def stop(self) -> Told:
        """End, and tell what came of it."""
        self._done.set()
        if self._thread.ident is None:
            return Told(recorded=False, notes=[])  # it was never begun
        stuck = not self._over.wait(PATIENCE_S)
        if not stuck:
            self._thread.join()
        with self._writing:
            self._ended = True
            if stuck:
                self._notes.append("the GPU driver had not answered when the program ended")
                self._lose("gpu_readings_failed" if self._ready else "gpu_unread", 1)
            self._lose("gpu_readings_failed", sum(reader.failures for reader in self._readers))
            self._lose("gpu_busy_unseen", sum(not reader.tells_busy() for reader in self._readers))
            self._flush()
            self._files.close()
        return Told(recorded=bool(self._readers), notes=self._notes)

    def _run(self) -> None:
        try:
            self._read()
        finally:
            self._over.set()

    def _read(self) -> None:
        if self._done.wait(QUIET_START_S):
            return
        try:
            driver = self._open()
        except UnreadError as error:
            with self._writing:
                if not self._ended:
                    self._notes.append(f"the GPUs could not be read: {error}")
                    self._lose("gpu_unread", 1)
                    self._flush()
            return
        if driver is None or not driver.devices:
            return
        self._begin(driver)
        wait = 0.0
        while not self._done.wait(max(wait, LEAST_PAUSE_S)):
            begun, worked = time.monotonic(), time.thread_time()
            if not self._tick():
                return
            spent = (time.thread_time() - worked) / MOST_OF_A_PROCESSOR
            wait = max(INTERVAL_S, spent) - (time.monotonic() - begun)
        self._tick()  # how it was at the end

    def _begin(self, driver: Driver) -> None:
        readers = [DeviceReader(number, device) for number, device in enumerate(driver.devices)]
        devices = [(reader, reader.device.memory(), reader.device.name(), reader.device.uuid()) for reader in readers]
        with self._writing:
            if self._ended:
                return
            for reader, memory, name, uuid in devices:
                total = None if memory is None else memory.total_bytes
                self._files.device(reader.number, reader.device.index, total, name, uuid, driver.version)
            self._readers = readers
            self._ready = True
            self._flush()

    def _tick(self) -> bool:
        """Read all GPUs once; False if no further readings can be had."""
        rows = [row for reader in self._readers for row in reader.read(self._pids)]
        with self._writing:
            if self._ended:
                return False
            try:
                for row in rows:
                    self._files.reading(row)
                self._files.flush()
            except OSError as error:
                self._notes.append(f"the readings of the GPUs end early: {error.strerror or error}")
                return False
        return True

    def _lose(self, name: str, count: int) -> None:
        if count:
            try:
                self._files.loss(name, count)
            except OSError:
                self._notes.append(f"{count} {name}")  # there is no room for the ledger

    def _flush(self) -> None:
        try:
            self._files.flush()
        except OSError as error:
            self._notes.append(f"the readings of the GPUs end early: {error.strerror or error}")


class DeviceReader:
    """Makes rows of what the driver tells of one GPU, and remembers what it has told already."""

    def __init__(self, number: int, device: Device) -> None:
        self.number = number
        self.device = device
        self._seen_us = self._seen_of_processes_us = time.time_ns() // 1000
        self._seen_ns = time.monotonic_ns()

    @property
    def failures(self) -> int:
        """Questions that should have had an answer, and had none."""
        return self.device.failures

    def tells_busy(self) -> bool:
        """True if the driver tells how busy the GPU is."""
        return self.device.tells_busy()

    def read(self, pids: RecordedPids) -> list[Reading]:
        """The readings that are new."""
        device, now_ns, utc_ns = self.device, time.monotonic_ns(), time.time_ns()
        memory, rates, uses = device.memory(), device.rates(), device.uses()
        ours = pids.among([use.pid for use in uses or ()])
        rows = [
            Reading(
                now_ns,
                self.number,
                memory_bytes=None if memory is None else memory.used_bytes,
                power_mw=device.power_mw(),
                temperature_c=device.temperature_c(),
                users=None if uses is None else len(uses),
                busy=None if rates is None else rates.busy,
                memory_busy=None if rates is None else rates.memory_busy,
            )
        ]
        rows += [
            Reading(now_ns, self.number, use.pid, memory_bytes=use.memory_bytes)
            for use in uses or ()
            if use.pid in ours and use.memory_bytes is not None
        ]
        clock = _Clock(now_ns, utc_ns)
        return rows + self._samples(clock) + (self._process_samples(clock, ours) if ours else [])

    def _samples(self, clock: _Clock) -> list[Reading]:
        rows = []
        for sample in self.device.samples(self._seen_us):
            if not clock.plausible(sample.until_us):
                continue
            # The clocks are read anew each time: the end of one is to be the beginning of the next all the same.
            until = max(clock.monotonic(sample.until_us), self._seen_ns)
            since = self._seen_ns if sample.until_us - self._seen_us <= LONGEST_SAMPLE_US else None
            self._seen_us, self._seen_ns = sample.until_us, until
            rows.append(Reading(until, self.number, since_ns=since, busy=sample.busy))
        return rows

    def _process_samples(self, clock: _Clock, pids: list[int]) -> list[Reading]:
        # The driver gives the mean since the moment that it is told: one long ago would give a mean of idleness.
        after = max(self._seen_of_processes_us, clock.utc_us - LONGEST_SAMPLE_US)
        rows = []
        for pid, sample in self.device.process_samples(after, pids):
            if clock.plausible(sample.until_us):
                until, since = clock.monotonic(sample.until_us), clock.monotonic(after)
                self._seen_of_processes_us = max(self._seen_of_processes_us, sample.until_us)
                rows.append(Reading(until, self.number, pid, since, busy=sample.busy, memory_busy=sample.memory_busy))
        return rows


class _Clock:
    """From the driver's clock (µs since 1970) to the recording's."""

    def __init__(self, now_ns: int, utc_ns: int) -> None:
        self.utc_us = utc_ns // 1000
        self._shift_ns = now_ns - utc_ns
        self._now_ns = now_ns

    def plausible(self, time_us: int) -> bool:
        """True if something can have happened then that is new now; drivers have told of other times."""
        return self.utc_us - OLDEST_SAMPLE_US < time_us <= self.utc_us + LONGEST_SAMPLE_US

    def monotonic(self, time_us: int) -> int:
        """The moment on the recording's clock, never later than now."""
        return min(time_us * 1000 + self._shift_ns, self._now_ns)


class RecordedPids:
    """The process ids of the recorded processes; the spool is looked at only when a new one is asked for."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._known: set[int] = set()
        self._looked = -LOOK_AGAIN_S

    def among(self, pids: Iterable[int]) -> list[int]:
        """The recorded processes among ``pids``."""
        requested = set(pids)
        now = time.monotonic()
        if not requested <= self._known and now - self._looked >= LOOK_AGAIN_S:
            self._looked = now
            self._look()
        return sorted(requested & self._known)

    def _look(self) -> None:
        try:
            names = os.listdir(self._spool)
        except OSError:
            return
        prefixes = (name.partition("-")[0] for name in names if name.endswith(".ctl"))
        self._known.update(int(prefix) for prefix in prefixes if prefix.isdecimal())

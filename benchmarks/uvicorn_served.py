"""The throughput of uvicorn that recording takes, against bare processes of the same service.

    python benchmarks/uvicorn_served.py                             # about six minutes
    python benchmarks/uvicorn_served.py --rounds 1 --turns 4        # does it work?

One server of each kind is started (bare, bare again, `--cpu-only`, full), and each serves in its turn, for half a
second, all that the load asks for: the others are idle meanwhile. A round is a set of new processes. The load is this
process; it needs a processor of its own. CPU time by request is of the server's process alone, with the recorder's own
threads, and says the same as the throughput where the server is what limits. `requests_served.py` has the same for
processes that are recorded and paused in turn, so without what merely being loaded costs.
"""

import json
import os
import random
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import click

from harness.arms import BARE, CPU_ONLY, FULL, RECORD, Arm, beside_bare
from harness.errors import BenchmarkError
from harness.in_turn import middle
from harness.measure import PROGRAMS, RECORDING
from harness.survey import ROOT, complaints

CONNECTIONS = 16
TURN_S = 0.5
REQUEST = b"GET /items/17 HTTP/1.1\r\nhost: here\r\naccept: */*\r\n\r\n"


@dataclass(frozen=True)
class Turn:
    """Requests by second, and CPU time of the server by request in seconds."""

    rate: float
    cpu_s: float


class Server:
    """A server of an arm, with the connections that load it."""

    def __init__(self, arm: Arm, folder: Path) -> None:
        self.name = arm.name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = arm.command([str(PROGRAMS / "uvicorn_service.py"), str(self._port)], folder / RECORDING)
        self._process = subprocess.Popen(command, cwd=folder, start_new_session=True)

    def connect(self) -> None:
        """Waits until it serves."""
        self._selector = selectors.DefaultSelector()
        for _ in range(CONNECTIONS):
            connection = self._connection()
            self._selector.register(connection, selectors.EVENT_READ, connection)
        self._pid = self._owner()

    def _connection(self) -> socket.socket:
        for _ in range(300):
            try:
                return socket.create_connection(("127.0.0.1", self._port), 5)
            except OSError:
                time.sleep(0.1)
        raise BenchmarkError(f"arm {self.name!r}: the server did not begin")

    def _owner(self) -> int:
        """The process that serves: this one's, or its child."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        service = str(PROGRAMS / "uvicorn_service.py").encode()
        serving = [
            pid
            for pid in (*map(int, children), self._process.pid)
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1] == service
        ]
        if len(serving) != 1:
            raise BenchmarkError(f"arm {self.name!r}: {len(serving)} processes serve")
        return serving[0]

    def _cpu_s(self) -> float:
        threads = Path(f"/proc/{self._pid}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in threads) / 1e9

    def serve(self, seconds: float) -> Turn:
        """The load of one turn; each connection has its answer at the end."""
        open_connections, served = set(), 0
        before, began = self._cpu_s(), time.monotonic()
        for key in self._selector.get_map().values():
            key.data.sendall(REQUEST)
            open_connections.add(key.data)
        while open_connections:
            for key, _ in self._selector.select():
                if not key.data.recv(1 << 16):
                    raise BenchmarkError(f"arm {self.name!r}: the server closed a connection")
                served += 1
                if time.monotonic() < began + seconds:
                    key.data.sendall(REQUEST)
                else:
                    open_connections.discard(key.data)
        return Turn(served / (time.monotonic() - began), (self._cpu_s() - before) / served)

    def end(self) -> None:
        """Ends it, and its recording."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()


def one_round(arms: list[Arm], turns: int) -> dict[str, list[Turn]]:
    """The turns of one set of processes, in an order that is drawn anew each time."""
    found: dict[str, list[Turn]] = {arm.name: [] for arm in arms}
    with ExitStack() as stack:
        servers = []
        for arm in random.sample(arms, len(arms)):
            server = Server(arm, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))))
            stack.callback(server.end)
            servers.append(server)
        for server in servers:
            server.connect()
            server.serve(1.0)
        for _ in range(turns):
            for server in random.sample(servers, len(servers)):
                found[server.name].append(server.serve(TURN_S))
    return found


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=8, show_default=True, help="Sets of processes.")
@click.option("--turns", type=click.IntRange(min=1), default=20, show_default=True, help="Of each process.")
@click.option(
    "--results", type=click.Path(path_type=Path, dir_okay=False), default=ROOT / "results" / "uvicorn_served.json"
)
def main(rounds: int, turns: int, results: Path) -> None:
    """What recording takes of uvicorn's throughput."""
    with complaints("uvicorn_served"):
        arms = beside_bare({CPU_ONLY: f"{RECORD} --cpu-only", FULL: RECORD})
        found = [one_round(arms, turns) for _ in range(rounds)]
        results.parent.mkdir(parents=True, exist_ok=True)
        raw = [{name: [(turn.rate, turn.cpu_s) for turn in each] for name, each in row.items()} for row in found]
        results.write_text(json.dumps(raw) + "\n", encoding="utf-8")
    print(table(found))


def table(found: list[dict[str, list[Turn]]]) -> str:
    """Each arm over bare, of the means of a round's turns: the median over rounds with its 95 % interval."""
    heads = ("throughput, times bare", "CPU by request, times bare", "requests by second")
    lines = [" " * 12 + "".join(head.rjust(30) for head in heads)]
    for name in found[0]:
        rate, cpu, rates = [], [], []
        for row in found:
            rates.append(mean(turn.rate for turn in row[name]))
            rate.append(rates[-1] / mean(turn.rate for turn in row[BARE]))
            cpu.append(mean(turn.cpu_s for turn in row[name]) / mean(turn.cpu_s for turn in row[BARE]))
        cells = str(middle(rate)), str(middle(cpu)), f"{mean(rates):,.0f}"
        lines.append(name.ljust(12) + "".join(cell.rjust(30) for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""One rank of a job: computes, loads, and meets the others in an all-reduce over sockets. Rank 5 loads for longer.

Usage: ranks.py PORT_FILE STEPS; RANK and WORLD_SIZE are in the environment. Prints the seconds that it was in
all_reduce, and in load.
"""

import os
import socket
import sys
import time

from tachograph.recorder import resume, span

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LATE = 5


def compute() -> int:
    return sum(number % 7 for number in range(20_000))


def load() -> None:
    time.sleep(0.12 if RANK == LATE else 0.01)


def all_reduce(peers: list[socket.socket], value: int) -> int:
    if RANK == 0:
        total = value + sum(int.from_bytes(peer.recv(8), "little") for peer in peers)
        for peer in peers:
            peer.sendall(total.to_bytes(8, "little"))
        return total
    peers[0].sendall(value.to_bytes(8, "little"))
    return int.from_bytes(peers[0].recv(8), "little")


def meet(port_file: str) -> list[socket.socket]:
    if RANK == 0:
        with socket.create_server(("127.0.0.1", 0)) as server:
            with open(f"{port_file}.tmp", "w") as file:
                file.write(str(server.getsockname()[1]))
            os.replace(f"{port_file}.tmp", port_file)
            return [server.accept()[0] for _ in range(WORLD - 1)]
    while not os.path.exists(port_file):
        time.sleep(0.02)
    with open(port_file) as file:
        return [socket.create_connection(("127.0.0.1", int(file.read())))]


def main(port_file: str, steps: int) -> None:
    peers = meet(port_file)
    all_reduce(peers, 0)  # all have begun: what is before is how they were started
    resume()
    inside = loading = 0.0
    for _ in range(steps):
        with span("compute"):
            compute()
        with span("load"):
            begun = time.perf_counter()
            load()
            loading += time.perf_counter() - begun
        with span("sync"):
            begun = time.perf_counter()
            assert all_reduce(peers, RANK) == WORLD * (WORLD - 1) // 2
            inside += time.perf_counter() - begun
    print(inside, loading)


main(sys.argv[1], int(sys.argv[2]))

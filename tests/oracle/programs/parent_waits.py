"""A main thread that waits for child processes, and clocks when; each child clocks when it was in `transform`.

Arguments: where to write the truth, what the children are, and for a child of `subprocess` `child` and its units of
work. The truth is the seconds of the waits, and the part of the children's time in them that was spent in `transform`.
"""

import json
import multiprocessing
import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

UNIT_S = 0.12
TASKS = (3, 1)
"""Units of work of the two children in a round: the second one is idle for much of it."""
ROUNDS = 3
Interval = tuple[float, float]

waits: list[Interval] = []
work: list[Interval] = []


def burn(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def transform(units: int) -> Interval:
    """Works itself, and calls what works for a third of that time: it is the innermost function with nearly all of it."""
    began = time.monotonic()
    until = time.thread_time() + 0.75 * units * UNIT_S
    while time.thread_time() < until:
        pass
    burn(0.25 * units * UNIT_S)
    return began, time.monotonic()


def waited(began: float) -> None:
    waits.append((began, time.monotonic()))


def pool() -> None:
    with multiprocessing.get_context("fork").Pool(2) as children:
        for _ in range(ROUNDS):
            began = time.monotonic()
            work.extend(children.map(transform, TASKS, chunksize=1))  # @pool
            waited(began)


def executor() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as children:
        for _ in range(ROUNDS):
            began = time.monotonic()
            work.extend(children.map(transform, TASKS))  # @executor
            waited(began)


def serve_queue(tasks: "multiprocessing.Queue[int | None]", results: "multiprocessing.Queue[Interval]") -> None:
    while (units := tasks.get()) is not None:
        results.put(transform(units))


def queues() -> None:
    context = multiprocessing.get_context("fork")
    tasks, results = context.Queue(), context.Queue()
    children = [context.Process(target=serve_queue, args=(tasks, results)) for _ in TASKS]
    for child in children:
        child.start()
    for _ in range(ROUNDS):
        began = time.monotonic()
        for units in TASKS:
            tasks.put(units)
        for _ in TASKS:
            work.append(results.get())  # @queues
        waited(began)
    for child in children:
        tasks.put(None)
    for child in children:
        child.join()


def serve_pipe(connection: "Connection[Interval, int]") -> None:
    while units := connection.recv():
        connection.send(transform(units))


def pipes() -> None:
    context = multiprocessing.get_context("fork")
    pairs = [context.Pipe() for _ in TASKS]
    children = [context.Process(target=serve_pipe, args=(theirs,)) for _, theirs in pairs]
    for child in children:
        child.start()
    for _ in range(ROUNDS):
        began = time.monotonic()
        for (mine, _), units in zip(pairs, TASKS, strict=True):
            mine.send(units)
        for mine, _ in pairs:
            work.append(mine.recv())  # @pipes
        waited(began)
    for mine, _ in pairs:
        mine.send(0)
    for child in children:
        child.join()


def programs() -> None:
    for _ in range(2):
        began = time.monotonic()
        text = subprocess.check_output([sys.executable, __file__, "-", "child"])  # @programs
        waited(began)
        work.append(tuple(json.loads(text)))


def jobs() -> None:
    from joblib import Parallel, delayed

    with Parallel(len(TASKS)) as children:
        children(delayed(transform)(0) for _ in TASKS)  # they are started, and import this
        for _ in range(ROUNDS):
            began = time.monotonic()
            work.extend(children(delayed(transform)(units) for units in TASKS))  # @jobs
            waited(began)


def unclear() -> None:
    """Waits in which a child works all the time, and which are not for it."""
    child = multiprocessing.get_context("fork").Process(target=transform, args=(100,))
    child.start()
    time.sleep(0.5)  # @sleeps
    mine, _theirs = socket.socketpair()
    mine.settimeout(0.5)
    try:
        mine.recv(1)  # @socket
    except TimeoutError:
        pass
    done: queue.Queue[int] = queue.Queue()

    def own() -> None:
        burn(0.3)
        done.put(1)

    threading.Thread(target=own).start()
    done.get()  # @thread
    child.kill()
    child.join()
    waits.append((0.0, 1.0))


def overlap(of: Interval, other: Interval) -> float:
    return max(0.0, min(of[1], other[1]) - max(of[0], other[0]))


if __name__ == "__main__":
    if sys.argv[2] == "child":
        print(json.dumps(transform(int(sys.argv[3]) if sys.argv[3:] else 5)))
        sys.exit()
    globals()[sys.argv[2]]()
    seconds = sum(end - start for start, end in waits)
    within = sum(overlap(each, wait) for each in work for wait in waits)
    children = 1 if sys.argv[2] == "programs" else len(TASKS)
    truth = {"wait_s": seconds, "share": within / seconds / children}
    Path(sys.argv[1]).write_text(json.dumps(truth))

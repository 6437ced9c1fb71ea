"""Counts its calls of two functions while it is stopped again and again, as a busy machine stops it: SECONDS of CPU time."""

import json
import os
import random
import signal
import sys
import time

calls = {"short": 0, "long": 0}


def short(number: int) -> int:
    calls["short"] += 1
    return number + 1


def long(number: int) -> int:
    calls["long"] += 1
    return sum(range(number))


def stop_again_and_again(program: int) -> None:
    """In a process of its own, until the program is gone."""
    draw = random.Random(5)
    while os.getppid() == program:
        os.kill(program, signal.SIGSTOP)
        time.sleep(0.004)
        os.kill(program, signal.SIGCONT)
        time.sleep(draw.uniform(0.001, 0.005))
    os._exit(0)


def main() -> None:
    program = os.getpid()
    stopper = os.fork()
    if stopper == 0:
        stop_again_and_again(program)
    while time.process_time() < float(sys.argv[1]):
        for number in range(400):
            short(number)
        for _ in range(10):
            long(3000)
    os.kill(stopper, signal.SIGKILL)
    os.waitpid(stopper, 0)
    os.kill(program, signal.SIGCONT)
    print(json.dumps(calls))


if __name__ == "__main__":
    main()

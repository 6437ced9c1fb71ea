"""Two threads that compete for the GIL, and one that waits for a lock as long as they run."""

import threading
import time

lock = threading.Lock()


def compete() -> None:
    """Runs Python code only."""
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        sum(range(50))


def wait() -> None:
    """Waits for what the main thread holds."""
    with lock:
        pass


lock.acquire()
rivals = [threading.Thread(target=compete, name=f"rival {number}") for number in range(2)]
waiter = threading.Thread(target=wait, name="waiter")
for thread in (*rivals, waiter):
    thread.start()
for thread in rivals:
    thread.join()
lock.release()
waiter.join()

"""Two thousand threads that live at once."""

import threading

threading.stack_size(128 << 10)
gate = threading.Barrier(2001, timeout=60)


def run() -> None:
    gate.wait()
    sum(range(2000))
    gate.wait()


threads = [threading.Thread(target=run, name=f"one-{n}") for n in range(2000)]
for thread in threads:
    thread.start()
gate.wait()
gate.wait()
for thread in threads:
    thread.join()
print(threading.active_count())

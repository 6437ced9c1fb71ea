"""Native work of known length on three threads at once: Python's main thread, a Python thread in C with the GIL
released, and a thread that Python does not know. The library is the third argument."""

import ctypes
import sys
import threading
import time

from truth import Clocks, seconds


def main() -> None:
    clocks = Clocks()
    unit = seconds(4.0) / 4 * 1e9
    library = ctypes.CDLL(sys.argv[3])
    library.oracle_burn.restype = ctypes.c_int64
    library.oracle_burn.argtypes = [ctypes.c_int64]
    library.oracle_native_start.restype = ctypes.c_void_p
    library.oracle_native_start.argtypes = [ctypes.c_int64]
    library.oracle_native_join.restype = ctypes.c_int64
    library.oracle_native_join.argtypes = [ctypes.c_void_p]
    holding = ctypes.PyDLL(sys.argv[3])
    holding.oracle_burn.restype = ctypes.c_int64
    holding.oracle_burn.argtypes = [ctypes.c_int64]

    def released() -> None:
        clocks.facts["released_tid"] = threading.get_native_id()
        clocks.spent["released"] = library.oracle_burn(int(unit))  # @released
        clocks.facts["released_thread_ns"] = time.thread_time_ns()

    native = library.oracle_native_start(int(unit * 1.5))
    thread = threading.Thread(target=released, name="oracle-released")
    thread.start()
    total, end = 0, time.thread_time_ns() + int(unit * 0.75)
    begin = time.thread_time_ns()
    while time.thread_time_ns() < end:  # @python
        for index in range(5000):  # @python
            total += index & 7  # @python
    clocks.spent["python"] = time.thread_time_ns() - begin
    clocks.spent["held"] = holding.oracle_burn(int(unit * 0.75))  # @held
    thread.join()
    clocks.spent["stateless"] = library.oracle_native_join(native)
    clocks.write()


if __name__ == "__main__":
    main()

"""Lines that are executed many times and allocate the same at each execution; some of it is native, some Python's.

The C library is the second argument.
"""

import sys

from memory_truth import MemoryTruth
from library import load

MB = 1 << 20
ROUNDS = 12


def main() -> None:
    truth = MemoryTruth()
    library = load(sys.argv[2])
    for _ in range(ROUNDS):
        one = bytearray(12 * MB)  # @one
        three = bytearray(12 * MB), bytearray(14 * MB), bytearray(16 * MB)  # @three
        native = library.oracle_malloc(30 * MB)  # @native
        half = bytearray(20 * MB), library.oracle_malloc(20 * MB)  # @half
        library.oracle_free(native)
        library.oracle_free(half[1])
        del one, three, half
    truth.sizes = {"one": 12 * MB, "three": 42 * MB, "native": 30 * MB, "half": 40 * MB}
    truth.facts["rounds"] = ROUNDS
    truth.write()


if __name__ == "__main__":
    main()

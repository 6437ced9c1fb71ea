"""The paper's experiment (2023 §6.3): an array of 512 MB of which a part is touched, once for every tenth.

Each array is gone before the next one is made; the last one stays to the end, and so does a smaller one beside it.
"""

import time

import numpy as np
from memory_truth import MemoryTruth, fence, looked

SIZE, BESIDE = 512 << 20, 64 << 20


def touch(array: np.ndarray, tenths: int) -> int:
    """Write to the array's first part; the monotonic time before that."""
    begin = time.monotonic_ns()
    array[: len(array) // 10 * tenths] = 1
    if tenths == 10:
        looked()
    return begin


def main() -> None:
    truth = MemoryTruth()
    moments = [(fence(), touch(np.empty(SIZE, np.uint8), 0))]  # @touched-0
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 1))]  # @touched-1
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 2))]  # @touched-2
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 3))]  # @touched-3
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 4))]  # @touched-4
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 5))]  # @touched-5
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 6))]  # @touched-6
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 7))]  # @touched-7
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 8))]  # @touched-8
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 9))]  # @touched-9
    moments += [(fence(), touch(np.empty(SIZE, np.uint8), 10))]  # @touched-10
    truth.facts["before_the_last"] = fence()
    kept = np.empty(SIZE, np.uint8)  # @kept
    beside = np.empty(BESIDE, np.uint8)  # @beside
    truth.facts["moments"] = moments
    truth.facts["held"] = [kept.nbytes, beside.nbytes]
    truth.write()
    globals().update(kept=kept, beside=beside)  # until the interpreter ends


if __name__ == "__main__":
    main()

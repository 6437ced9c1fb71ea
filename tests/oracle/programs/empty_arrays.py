"""Arrays of numpy that are not touched, filled to the half, or zeros."""

import numpy as np
from memory_truth import MemoryTruth, looked

MB = 1 << 20
truth = MemoryTruth()
empty = np.empty(1 << 30, np.uint8)  # @empty
zeros = np.zeros(1 << 28, np.uint8)  # @zeros
half = np.empty(1 << 28, np.uint8)  # @half
half[: 1 << 27] = 1
looked()
truth.sizes = {"empty": 0, "zeros": 0, "half": 1 << 27}
truth.write()

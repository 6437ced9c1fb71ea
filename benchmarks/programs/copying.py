"""Copies of known size, each on a line of its own.

python copying.py REPEATS REPORT     # writes name -> bytes copied as JSON
"""

import json
import pickle
import sys
from pathlib import Path

import numpy as np

SIZE = 4 << 20


def main() -> None:
    """Copies everything so often. Each copy is of `SIZE` bytes."""
    repeats = int(sys.argv[1])
    buffer = bytearray(SIZE)
    view = memoryview(bytearray(SIZE))
    text = bytes(SIZE)
    array = np.ones(SIZE // 8)
    for _ in range(repeats):
        bytes(buffer)  # @bytes
        text[1:]  # @slice
        array.copy()  # @array
        array.tobytes()  # @tobytes
        pickle.dumps(text)  # @pickle
        view[:] = text  # @view
    names = ("bytes", "slice", "array", "tobytes", "pickle", "view")
    Path(sys.argv[2]).write_text(json.dumps(dict.fromkeys(names, repeats * SIZE)), encoding="utf-8")


if __name__ == "__main__":
    main()

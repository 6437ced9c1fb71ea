"""Small copies in two lines by turns, small ones among large ones, and ones that are too small to be counted."""

from memory_truth import MemoryTruth

SMALL, FEW = b"s" * 2048, b"f" * 400
LARGE = bytes(4 << 20)


def by_turns(rounds: int) -> None:
    for _ in range(rounds):
        bytearray(SMALL), bytearray(SMALL), bytearray(SMALL)  # @three
        bytearray(SMALL)  # @one


def among_large(rounds: int) -> None:
    for _ in range(rounds):
        bytearray(LARGE)  # @large
        for _ in range(1024):
            bytearray(SMALL)  # @among


def too_small() -> None:
    for _ in range(100_000):
        bytearray(FEW)  # @too-small


def main() -> None:
    truth = MemoryTruth()
    by_turns(40_000)
    among_large(50)
    too_small()
    truth.sizes = {
        "one": 40_000 * 2048,
        "three": 40_000 * 3 * 2048,
        "large": 50 * len(LARGE),
        "among": 50 * 1024 * 2048,
        "too-small": 0,
    }
    truth.write()


if __name__ == "__main__":
    main()

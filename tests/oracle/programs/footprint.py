"""A footprint of known shape: grown in small blocks, shrunk, churned, and a peak that only some of its blocks see."""

from memory_truth import MemoryTruth, fence

MB = 1 << 20
GROWN = 1500


def grow(count: int) -> list[bytes]:
    return [bytes(100_000) for _ in range(count)]  # @grow


def churn(count: int) -> None:
    for _ in range(count):
        bytes(500_000)  # @churn


def peak() -> None:
    held = bytearray(60 * MB)  # @held
    before = bytearray(100 * MB)  # @before
    del before
    top = bytearray(150 * MB)  # @top
    del top
    after = bytearray(90 * MB)  # @after
    del held, after


def main() -> None:
    truth = MemoryTruth()
    with truth.window("grow"):
        grown = grow(GROWN)
    with truth.window("shrink"):
        grown.clear()
    with truth.window("churn"):
        churn(4000)
    fence()
    peak()
    truth.sizes = {
        "grow": GROWN * 100_000,
        "churn": 4000 * 500_000,
        "held": 60 * MB,
        "before": 100 * MB,
        "top": 150 * MB,
        "after": 90 * MB,
    }
    truth.write()


if __name__ == "__main__":
    main()

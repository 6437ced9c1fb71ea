"""A footprint of known shape: grown in small blocks, shrunk, churned, and a peak that only some of its blocks see."""

from books import Books, fence

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
    books = Books()
    with books.window("grow"):
        grown = grow(GROWN)
    with books.window("shrink"):
        grown.clear()
    with books.window("churn"):
        churn(4000)
    fence()
    peak()
    books.sizes = {
        "grow": GROWN * 100_000,
        "churn": 4000 * 500_000,
        "held": 60 * MB,
        "before": 100 * MB,
        "top": 150 * MB,
        "after": 90 * MB,
    }
    books.write()


if __name__ == "__main__":
    main()

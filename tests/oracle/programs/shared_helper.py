"""Two functions that allocate 5 : 2, both through one helper: only the call path tells them apart.

Argument 2 is the size of a block, argument 3 the number of rounds of seven blocks.
"""

import sys

from books import Books

PIECE = int(sys.argv[2])
kept: list[bytearray] = []


def helper(count: int) -> None:
    for _ in range(count):
        kept.append(bytearray(PIECE))  # @shared


def first(books: Books) -> None:
    helper(5)  # @first
    books.add("first", 5 * PIECE)


def second(books: Books) -> None:
    helper(2)  # @second
    books.add("second", 2 * PIECE)


def main() -> None:
    books = Books()
    for _ in range(int(sys.argv[3])):
        first(books)
        second(books)
    books.write()


if __name__ == "__main__":
    main()

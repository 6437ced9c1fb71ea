"""numpy arithmetic by operators, which no CALL announces: every result is an array of a known size."""

import numpy as np
from books import Books

ROUNDS = 150
A = np.arange(150_000, dtype=np.float64)
B = A + 1


def work(books: Books) -> None:
    for index in range(ROUNDS):
        c = A * B  # @product
        index += c.ndim  # @after
        books.add("product", c.nbytes)
        d = A + B  # @sum
        index += d.ndim  # @after
        books.add("sum", d.nbytes)
        e = -c  # @negative
        index += e.ndim  # @after
        books.add("negative", e.nbytes)
        f = A < B  # @compare
        index += f.ndim  # @after
        books.add("compare", f.nbytes)


def main() -> None:
    books = Books()
    work(books)
    books.write()


if __name__ == "__main__":
    main()

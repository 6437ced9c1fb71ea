"""Native work reached by operators, without any CALL: every line pays for itself and the next one does not."""

from decimal import Decimal, getcontext

from truth import Clocks, seconds

getcontext().prec = 20_000
A = Decimal(2) / Decimal(7)
B = Decimal(3) / Decimal(11)


def product(rounds: int) -> None:
    for index in range(rounds):
        c = A * B  # @product
        index += 1  # @after-product
        index -= c is A  # @after-product


def quotient(rounds: int) -> None:
    for index in range(rounds):
        c = A / B  # @quotient
        index += 1  # @after-quotient
        index -= c is A  # @after-quotient


def addition(rounds: int) -> None:
    for index in range(rounds):
        c = A + B  # @addition
        index += 1  # @after-addition
        index -= c is A  # @after-addition


def python(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @python
        total += index & 3  # @python
    return total


def main() -> None:
    clocks = Clocks()
    clocks.cycle(
        seconds(5.0),
        [("product", product, 10), ("quotient", quotient, 4), ("addition", addition, 1200), ("python", python, 60_000)],
    )
    clocks.write()


if __name__ == "__main__":
    main()

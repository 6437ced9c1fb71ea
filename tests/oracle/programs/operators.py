"""Native work reached by operators, without any CALL: every line pays for itself and the next one does not."""

from decimal import Decimal, getcontext

from truth import Clocks, seconds

FEW, MANY = 20_000, 400_000
"""Digits: enough for an operation to take much longer than the line behind it, also for the cheap addition."""


def digits(number: int, divisor: int, count: int) -> Decimal:
    getcontext().prec = count
    return Decimal(number) / Decimal(divisor)


A, B = digits(2, 7, FEW), digits(3, 11, FEW)
LONG_A, LONG_B = digits(2, 7, MANY), digits(3, 11, MANY)


def product(rounds: int) -> None:
    getcontext().prec = FEW
    for index in range(rounds):
        c = A * B  # @product
        index += 1  # @after-product
        index -= c is A  # @after-product


def quotient(rounds: int) -> None:
    getcontext().prec = FEW
    for index in range(rounds):
        c = A / B  # @quotient
        index += 1  # @after-quotient
        index -= c is A  # @after-quotient


def addition(rounds: int) -> None:
    getcontext().prec = MANY
    for index in range(rounds):
        c = LONG_A + LONG_B  # @addition
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
        seconds(4.0),
        [("product", product, 10), ("quotient", quotient, 4), ("addition", addition, 60), ("python", python, 60_000)],
    )
    clocks.write()


if __name__ == "__main__":
    main()

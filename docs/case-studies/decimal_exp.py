"""The exponential function in decimals: by the recipe of Python's documentation, and with small numbers.

Scalene (arXiv 2020), section 4.3.
"""

import sys
from decimal import Decimal, getcontext


def exp(x: Decimal) -> Decimal:
    """The slow way: ``fact`` grows without bound, and is made a decimal anew for each ratio."""
    getcontext().prec += 2
    i, last, s, fact, num = 0, Decimal(0), Decimal(1), 1, Decimal(1)
    while s != last:
        last = s
        i += 1
        fact *= i
        num *= x
        s += num / fact
    getcontext().prec -= 2
    return +s


def exp_small(x: Decimal) -> Decimal:
    """The same; ``nf`` is the ratio itself, which stays small."""
    getcontext().prec += 2
    i, last, s, nf = 0, Decimal(0), Decimal(1), Decimal(1)
    while s != last:
        last = s
        i += 1
        nf *= x / i
        s += nf
    getcontext().prec -= 2
    return +s


def main(x: int, *, small: bool) -> None:
    """Print e to the power of ``x``."""
    function = exp_small if small else exp
    print(f"{function(Decimal(x)):.10e}")


if __name__ == "__main__":
    main(int(sys.argv[1]), small="--small" in sys.argv)

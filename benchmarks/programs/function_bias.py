"""Two functions that compute the same, one with a call in its loop: how much time does each take?

python function_bias.py CALLING INLINED REPORT     # passes of each; writes the CPU seconds of each as JSON
"""

from turns import take_turns  # type: ignore[import-not-found]  # beside this program when it runs


def step(total: int, number: int) -> int:
    """What the other function has in its loop."""
    if number % 3:
        total += number * 2
    else:
        total -= number
    return total


def calling(passes: int) -> int:
    """The loop with a call."""
    total = 0
    for number in range(passes):
        total = step(total, number)
    return total


def inlined(passes: int) -> int:
    """The loop without."""
    total = 0
    for number in range(passes):
        if number % 3:
            total += number * 2
        else:
            total -= number
    return total


if __name__ == "__main__":
    take_turns({"calling": calling, "inlined": inlined})

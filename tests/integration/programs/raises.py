"""Dies of an exception with a cause, some frames deep."""


def inner(depth: int) -> int:
    if depth == 0:
        raise LookupError("the innermost error")
    return inner(depth - 1)


def outer() -> None:
    try:
        inner(3)
    except LookupError as error:
        raise RuntimeError("what the program died of") from error


print("before")
outer()

"""The filter of processes by the names of their programs (``--include``, ``--exclude``).

Runs in the profiled processes, at their start, and therefore imports nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# What parts the patterns in the settings, and what the settings themselves are made of.
_ESCAPED = {"%": "%25", ":": "%3a", ",": "%2c", "\n": "%0a"}
# The interpreter's long options that take the next argument.
_TAKE_NEXT = ("--check-hash-based-pycs",)


def join_patterns(patterns: "Iterable[str]") -> str:
    """The patterns as one text without commas, for the settings."""
    return ":".join("".join(_ESCAPED.get(c, c) for c in pattern) for pattern in patterns)


def split_patterns(text: str) -> list[str]:
    """The patterns in a text that :func:`join_patterns` made."""
    patterns = text.split(":") if text else []
    for char, escaped in reversed(_ESCAPED.items()):
        patterns = [pattern.replace(escaped, char) for pattern in patterns]
    return patterns


def passes_filter(include: str, exclude: str, orig_argv: "Sequence[str]") -> bool:
    """True if the Python process with this command line (:data:`sys.orig_argv`) is to be recorded.

    ``include`` and ``exclude`` are joined patterns. Unless ``include`` is empty only those that match one of its
    patterns are, and never those that match one of ``exclude``.
    """
    if not include and not exclude:
        return True
    names = program_names(orig_argv)
    return not any_matches(split_patterns(exclude), names) and (
        not include or any_matches(split_patterns(include), names)
    )


def program_names(orig_argv: "Sequence[str]") -> list[str]:
    """The names of a Python process: its interpreter, and its script with and without .py, or its module."""
    names = [_last_part(orig_argv[0])] if orig_argv else []
    index = 1
    while index < len(orig_argv):
        argument = orig_argv[index]
        if argument.startswith("--") and len(argument) > 2:
            index += 2 if argument in _TAKE_NEXT else 1
        elif argument.startswith("-") and len(argument) > 1:
            what, taken = _of_cluster(orig_argv, index)
            if what is not None:
                return [*names, *what]
            index += taken
        else:
            script = _last_part(argument)
            return [*names, script, *([script[:-3]] if script.endswith(".py") else [])]
    return names


def any_matches(patterns: "Iterable[str]", names: "Iterable[str]") -> bool:
    """True if a pattern stands for the whole of a name; ``*`` is any text, ``?`` any character."""
    return any(matches(name, pattern) for pattern in patterns for name in names)


def matches(name: str, pattern: str) -> bool:
    """True if ``pattern`` stands for the whole of ``name``."""
    at = place = 0
    # Where to go on if what follows the last star does not fit: behind the star, and one character further.
    behind_star, retry = -1, 0
    while at < len(name):
        if place < len(pattern) and pattern[place] == "*":
            place += 1
            behind_star, retry = place, at
        elif place < len(pattern) and pattern[place] in ("?", name[at]):
            at, place = at + 1, place + 1
        elif behind_star >= 0:
            retry += 1
            at, place = retry, behind_star
        else:
            return False
    return all(char == "*" for char in pattern[place:])


def _of_cluster(orig_argv: "Sequence[str]", index: int) -> "tuple[list[str] | None, int]":
    """The names of what a cluster of short options runs (``-m``, ``-c``), and how many arguments the cluster takes."""
    argument = orig_argv[index]
    for at in range(1, len(argument)):
        letter, attached = argument[at], argument[at + 1 :]
        if letter in "cm":
            text = attached or "".join(orig_argv[index + 1 : index + 2])
            return ([text] if letter == "m" else ["-c", *_first_import(text)]), 0
        if letter in "XW":
            return None, 1 if attached else 2
    return None, 1


def _first_import(code: str) -> list[str]:
    """The module that ``from multiprocessing.spawn import spawn_main; ...`` imports: pools start workers so."""
    words = code.split(None, 2)
    return [words[1]] if len(words) == 3 and words[0] == "from" and words[2].startswith("import") else []


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]

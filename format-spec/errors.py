"""The exceptions of this package, and text that can be encoded and printed for their messages."""

from __future__ import annotations


class FormatError(Exception):
    """Something is not a tachograph recording, or not one that this version can read.

    The message is one line that names what was wrong and, where there is one, what to do.
    """

    def __init__(self, message: str) -> None:
        # Names of files and values found in a recording end up in messages: keep them on one line and printable.
        super().__init__("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in message))


class NewerVersionError(FormatError):
    """A recording, or its spool, has a major version that is newer than this one."""


def clean_text(text: str) -> str:
    """The text with lone surrogates written as escapes, because Arrow strings are UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or the name of its class."""
    return str(error).partition("\n")[0] or type(error).__name__

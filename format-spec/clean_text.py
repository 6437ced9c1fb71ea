"""Texts that can be encoded and printed."""

from __future__ import annotations


def clean_text(text: str) -> str:
    """The text with lone surrogates written as escapes, because Arrow strings are UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")

"""What goes wrong with a push."""

from __future__ import annotations

from tachograph.format import FormatError


class PushError(FormatError):
    """A push that did not succeed, in one line without credentials."""

"""Makes a recording fit to be handed on: without texts, paths and names that are private, or in part.

A scrubbed recording is a recording: it can be analyzed, exported and compared, and its manifest says what was removed.
"""

from __future__ import annotations

from .request import Request, make_request
from .scrubbed_copy import scrub

__all__ = ["Request", "make_request", "scrub"]

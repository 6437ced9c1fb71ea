"""Headers from the environment: ``NAME=VALUE,NAME=VALUE``, percent-encoded, as OpenTelemetry's variables have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from .address import PushError

OURS = "TACHOGRAPH_PUSH_HEADERS"
OTLP = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS")
"""For OTLP only; the latter counts where both have a name."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")


def read_headers(environment: Mapping[str, str], variables: Iterable[str]) -> dict[str, str]:
    """The headers of some variables, by names in small letters; later ones count.

    Errors:
        PushError: one is not of that form; values are in no message.
    """
    found: dict[str, str] = {}
    for variable in variables:
        for number, entry in enumerate(environment.get(variable, "").split(","), 1):
            if not entry.strip():
                continue
            name, equals, value = entry.partition("=")
            name, value = unquote(name.strip()), unquote(value.strip(), "latin-1")
            if not (equals and _NAME.fullmatch(name) and _VALUE.fullmatch(value)):
                raise PushError(f"entry {number} of {variable} is not NAME=VALUE of a header")
            found[name.lower()] = value
    return found

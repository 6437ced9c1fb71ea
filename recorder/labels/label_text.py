"""Parses labels: ``version=1.4``, or several of them, ``service.name=shop,version=1.4``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LABELS = 64
"""Labels of a recording."""

MAX_KEY, MAX_VALUE = 64, 256
"""Characters of a label's name and of its value."""

MAX_LIST = 1 << 16
"""Characters of a variable with labels that are read."""

# Names of OpenTelemetry's attributes and of Kubernetes' labels are of this form.
_KEY = r"[A-Za-z_][A-Za-z0-9_.\-/]*"


def parse_label(text: str) -> tuple[str, str]:
    """Name and value of ``KEY=VALUE``. Raises ValueError, with one line for the user, if it is no label."""
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise ValueError(f"{shortened(text)} is not KEY=VALUE, such as version=1.4")
    return checked(key.strip(), value.strip())


def parse_labels(text: str) -> dict[str, str]:
    """The labels of ``KEY=VALUE,KEY=VALUE``, percent-decoded as OpenTelemetry has them; the last of a name counts.

    Raises ValueError, with one line for the user, if one of them is no label, or there are too many.
    """
    if len(text) > MAX_LIST:
        raise ValueError(f"it has more than {MAX_LIST:,} characters")
    labels = dict(_pairs(text))
    if len(labels) > MAX_LABELS:
        raise ValueError(f"it has {len(labels)} labels, more than {MAX_LABELS}")
    return labels


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(","):
        if part.strip():
            key, value = parse_label(part)
            yield checked(key, _decoded(value)) if "%" in value else (key, value)


def _decoded(value: str) -> str:
    from urllib.parse import unquote  # most values have nothing to be decoded, and the program waits for imports

    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise ValueError(f"{shortened(value)} is not percent-encoded UTF-8") from None


def checked(key: str, value: str) -> tuple[str, str]:
    """The label. Raises ValueError, with one line for the user, if it has a name or a value that no label can have."""
    import re  # most recordings have no labels of their own, and the program waits for imports

    if len(key) > MAX_KEY or re.fullmatch(_KEY, key, re.ASCII) is None:
        raise ValueError(
            f"the name {shortened(key)} must begin with a letter, have only letters, digits and _ . - / and at most"
            f" {MAX_KEY} characters"
        )
    if not value:
        raise ValueError(f"the label {key!r} has no value")
    if len(value) > MAX_VALUE or not value.isprintable():
        raise ValueError(f"the value of {key!r} must be printable and have at most {MAX_VALUE} characters")
    return key, value


def shortened(text: str) -> str:
    """A text as it is shown in a message."""
    return repr(text if len(text) <= 40 else text[:40] + "…")

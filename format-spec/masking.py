"""Masks what looks like a secret in a command line, before it is stored.

A recording travels; a password that was typed on the command line must not travel with it. Rather one value too many
is masked than one too few: an argument is stored to remind people of what they ran, nothing is computed from it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

MASK = "***"
MAX_LENGTH = 4096
"""Characters kept of one argument."""

# A name is suspicious if one of these is among its words ...
_SECRET_WORDS = {
    *("password", "passwd", "passphrase", "pwd", "pass", "pw", "pin", "otp", "pat"),
    *("secret", "secrets", "token", "auth", "authorization", "bearer", "credential", "credentials", "signature"),
    *("apikey", "accesskey", "secretkey", "privatekey", "cookie", "cookies", "session", "sessionid", "sid", "dsn"),
}
# ... or the last one, ...
_LAST_WORDS = {"key", "keys"}
# ... unless it names a place or a way and not the secret itself.
_HARMLESS_ENDS = {
    *("file", "path", "dir", "folder", "name", "type", "method", "mode", "url", "host", "port"),
    *("length", "count", "limit", "size", "timeout"),
}

_NAME = r"[A-Za-z][A-Za-z0-9_.-]*"
_OPTION = re.compile(rf"(?P<dashes>--?)(?P<name>{_NAME})(?P<value>=.*)?", re.DOTALL)
_ASSIGNMENT = re.compile(
    rf"""(?P<name>{_NAME})(?P<between>["']?\s*[=:]\s*)(?P<value>"[^"]*"|'[^']*'|(?:(?:Bearer|Basic|Token)\s+)?[^\s&;,"']+)""",
    re.IGNORECASE,
)
_URL_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s@]+@")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KNOWN_TOKENS = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}"
    r"|sk-[\w-]{16,}|xox[a-z]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN[^-]*PRIVATE KEY-----.*",
    re.DOTALL,
)
_RANDOM = re.compile(r"(?<![\w/.+=-])[\w+=-]{24,}(?![\w/.+=-])")


def mask_arguments(arguments: Sequence[str]) -> list[str]:
    """``arguments`` with the values that look like secrets replaced by ``***``."""
    masked: list[str] = []
    value_is_secret = False
    for argument in arguments:
        option = _OPTION.fullmatch(argument)
        if value_is_secret and option is None:
            masked.append(MASK)
            value_is_secret = False
            continue
        secret = option is not None and is_suspicious(option["name"])
        value_is_secret = option is not None and secret and option["value"] is None
        if option is not None and secret and option["value"] is not None:
            masked.append(f"{option['dashes']}{option['name']}={MASK}")
        else:
            masked.append(mask_text(argument))
    return masked


def mask_text(text: str) -> str:
    """``text`` with logins in URLs, values of suspicious names, known tokens and long random strings masked."""
    text = _KNOWN_TOKENS.sub(MASK, text)
    text = _URL_LOGIN.sub(rf"\g<scheme>{MASK}@", text)
    text = _ASSIGNMENT.sub(_mask_assignment, text)
    text = _RANDOM.sub(lambda match: MASK if looks_random(match[0]) else match[0], text)
    return text if len(text) <= MAX_LENGTH else text[:MAX_LENGTH] + "…"


def _mask_assignment(match: re.Match[str]) -> str:
    return f"{match['name']}{match['between']}{MASK}" if is_suspicious(match["name"]) else match[0]


def is_suspicious(name: str) -> bool:
    """Whether an option or a variable of this name is likely to hold a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in _HARMLESS_ENDS:
        return False
    return words[-1] in _LAST_WORDS or not _SECRET_WORDS.isdisjoint(words)


def looks_random(text: str) -> bool:
    """Whether capitals, small letters and digits are mixed as nobody would have thought them up."""
    if not (re.search(r"[A-Z]", text) and re.search(r"[a-z]", text) and re.search(r"[0-9]", text)):
        return False
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
    return entropy > 4.0

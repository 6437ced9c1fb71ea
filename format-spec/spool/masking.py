"""Masks what looks like a secret in a command line, before it is stored.

A recording travels; a password that was typed on the command line must not travel with it. Rather one value too many
is masked than one too few: an argument is stored to remind people of what they ran, nothing is computed from it.

A program's arguments are untrusted and may be megabytes: an argument is cut before it is searched, and every pattern
takes time linear in the text. Each begins at the first character of a word and never gives back what it has matched
(``++``, ``*+``), so no character is read more than a few times.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

MASK = "***"
CUT = "…"
"""Stands at the end of an argument, or of a list of them, that was cut."""

MAX_LENGTH = 4096
"""Characters kept of one argument."""

MAX_ARGUMENTS = 1000
"""Arguments kept of one command line."""

_LOOK_AHEAD = 4096
"""Characters searched after those that are kept: a secret that the cut divides is recognized by its end."""

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

_OPTION = re.compile(r"(?P<dashes>--?)(?P<name>[A-Za-z][A-Za-z0-9_.-]*+)(?P<value>=.*+)?", re.DOTALL)
# Digits and dots before the first letter belong to the word, but not to the name.
_ASSIGNMENT = re.compile(
    r"""(?<![A-Za-z0-9_.-])(?P<before>[0-9_.-]*+)(?P<name>[A-Za-z][A-Za-z0-9_.-]*+)(?P<between>["']?\s*+[=:]\s*+)"""
    r"""(?:"[^"]*+"?|'[^']*+'?|(?:(?:Bearer|Basic|Token)\s++)?[^\s&;,"']++)""",
    re.IGNORECASE,
)
_URL_LOGIN = re.compile(
    r"(?<![A-Za-z0-9+.-])(?P<before>[0-9+.-]*+)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*+://)[^/\s@]++@",
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_KNOWN_TOKENS = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+|glpat-[\w-]{16,}+|hf_[A-Za-z0-9]{20,}+|pypi-[\w-]{20,}+"
    r"|sk-[\w-]{16,}+|xox[a-z]-[\w-]{10,}+|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}+"
    r"|-----BEGIN[^-]*PRIVATE KEY-----.*",
    re.DOTALL,
)
# A JSON web token: three parts with dots between them, of which the first has enough behind its beginning. No group is
# repeated possessively: before 3.11.5 that goes wrong.
_WEB_TOKEN = re.compile(r"(?<![\w-])(?=[\w-]*eyJ[\w-]{8})(?P<first>[\w-]++)\.[\w-]{8,}+\.[\w-]*+")
_RANDOM = re.compile(r"(?<![\w/.+=-])[\w+=-]{24,}+(?![/.])")


def mask_arguments(arguments: Sequence[str]) -> list[str]:
    """``arguments`` with the values that look like secrets replaced by ``***``, cut where they are very long or many.

    An argument that was cut ends with ``…``; so does the list where arguments are left out.
    """
    masked: list[str] = []
    value_is_secret = False
    for argument in arguments[:MAX_ARGUMENTS]:
        option = _OPTION.fullmatch(argument[: MAX_LENGTH + _LOOK_AHEAD])
        if value_is_secret and option is None:
            masked.append(MASK)
            value_is_secret = False
            continue
        secret = option is not None and is_suspicious(option["name"])
        value_is_secret = option is not None and secret and option["value"] is None
        if option is not None and secret and option["value"] is not None:
            masked.append(_cut(f"{option['dashes']}{option['name']}={MASK}", MAX_LENGTH))
        else:
            masked.append(mask_text(argument))
    return masked if len(arguments) <= MAX_ARGUMENTS else [*masked, CUT]


def mask_text(text: str) -> str:
    """``text`` with logins in URLs, values of suspicious names, known tokens and long random strings masked, and cut.

    Takes no longer for a text of megabytes than for one of ``MAX_LENGTH`` characters.
    """
    searched = text[: MAX_LENGTH + _LOOK_AHEAD]
    masked = _KNOWN_TOKENS.sub(MASK, searched)
    masked = _WEB_TOKEN.sub(_mask_web_token, masked)
    masked = _URL_LOGIN.sub(rf"\g<before>\g<scheme>{MASK}@", masked)
    masked = _ASSIGNMENT.sub(_mask_assignment, masked)
    masked = _RANDOM.sub(lambda match: MASK if looks_random(match[0]) else match[0], masked)
    if len(searched) == len(text):
        return _cut(masked, MAX_LENGTH)
    # What stands at the end of the searched part may be the beginning of a secret that could not be recognized.
    return _cut(masked, min(MAX_LENGTH, max(0, len(masked) - _LOOK_AHEAD)))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + CUT


def _mask_web_token(match: re.Match[str]) -> str:
    before, _, _ = match["first"].partition("eyJ")
    return before + MASK


def _mask_assignment(match: re.Match[str]) -> str:
    if not is_suspicious(match["name"]):
        return match[0]
    return f"{match['before']}{match['name']}{match['between']}{MASK}"


def is_suspicious(name: str) -> bool:
    """True if an option or a variable of this name is likely to hold a secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in _HARMLESS_ENDS:
        return False
    return words[-1] in _LAST_WORDS or not _SECRET_WORDS.isdisjoint(words)


def looks_random(text: str) -> bool:
    """True if capitals, small letters and digits are mixed as in a generated secret."""
    if not (re.search(r"[A-Z]", text) and re.search(r"[a-z]", text) and re.search(r"[0-9]", text)):
        return False
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
    return entropy > 4.0

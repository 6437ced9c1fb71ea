"""Where recordings are sent to: a URL of fsspec, as it is typed behind ``--output``.

It is read before the program starts, and imports nothing of fsspec.
"""

from __future__ import annotations

from tachograph.format.plain_records import record_class
from tachograph.recorder.problems import Refused

SUFFIX, ARCHIVE = ".tacho", ".tacho.zip"

BY_PROTOCOL = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az"), "adlfs"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
}
"""Modules that fsspec needs for a protocol, where it needs one."""


@record_class
class Destination:
    """A URL: of one recording if it ends in ``.tacho`` or ``.tacho.zip``, else of a folder for many."""

    url: str

    @property
    def names_one(self) -> bool:
        """True if it is the URL of one recording."""
        return self.url.endswith((SUFFIX, ARCHIVE))

    @property
    def folder(self) -> str:
        """The URL of the folder, as it may be shown."""
        url = without_secrets(self.url).rstrip("/")
        return url.rpartition("/")[0] if self.names_one else url

    def recording(self, stem: str, created_utc: str, uuid: str) -> str:
        """The URL of a recording's archive. In a folder its name tells when it began, and is its own."""
        if self.names_one:
            return self.url.removesuffix(".zip") + ".zip"
        import re

        moment = re.sub(r"\+00:00$", "Z", created_utc)
        name = "-".join(filter(None, (stem, re.sub(r"[^0-9TZ]", "", moment), re.sub(r"[^0-9a-f]", "", uuid)[:8])))
        address, mark, query = self.url.partition("?")
        return f"{address.rstrip('/')}/{name}{ARCHIVE}{mark}{query}"


def parse_output(text: str) -> str | Destination:
    """The folder or URL that ``--output`` means. Raises ValueError, with one line for the user, if it names no place.

    A path may hold ``://`` only behind a slash: ``./s3://x`` is a folder.
    """
    if "://" in text and _is_protocol(text.partition("://")[0]):
        return parse_url(text)
    return text.rstrip("/") or ("/" if text else ".")


def parse_url(text: str) -> Destination:
    """The URL of a store. Raises ValueError, with one line for the user, if it is none."""
    protocol, separator, rest = text.partition("://")
    if not separator or not _is_protocol(protocol):
        raise ValueError(f"{without_secrets(text)!r} is not a URL such as s3://bucket/folder")
    if not rest.strip("/"):
        raise ValueError(f"{text!r} names no place in the store, such as {protocol}://bucket/folder")
    return Destination(text)


def _is_protocol(text: str) -> bool:
    """True if a URL may begin so: a letter, and letters, digits and ``+ . -``."""
    plain = text.replace("+", "").replace(".", "").replace("-", "")
    return text.isascii() and text[:1].isalpha() and plain.isalnum()


def check_installed(destination: Destination) -> None:
    """Refuse, in one line that says what to install, if what the URL needs is missing."""
    from importlib.util import find_spec  # only a URL waits for it

    protocol = destination.url.partition("://")[0].lower()
    needed = [name for name in ("fsspec", BY_PROTOCOL.get(protocol)) if name is not None]
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        extra = {"fsspec", "s3fs"} >= set(missing)
        what = "'tachograph[upload]'" if extra else " ".join(missing)
        raise Refused(f"{protocol}:// needs {' and '.join(missing)}: pip install {what}")


def without_secrets(text: str) -> str:
    """Text with the names, passwords and parameters of URLs masked."""
    import re

    text = re.sub(r"(?<=://)[^/@\s]*@", "***@", text)
    return re.sub(r"(://[^\s?'\"]*)\?[^\s'\"]*", r"\1?***", text)

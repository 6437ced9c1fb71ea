"""The manifest of a recording: ``manifest.json``, read, checked and written."""

from __future__ import annotations

from os import PathLike, fspath

from .atomic import read_regular_file, write_bytes
from .errors import FormatError, NewerVersionError, clean_text
from .plain_records import field, fields_of, record_class, to_json
from .version import FORMAT_VERSION as FORMAT_VERSION  # noqa: PLC0414  # importable from here, too

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_MANIFEST_SIZE = 16 << 20
MANIFEST_NAME = "manifest.json"
LEAST_INTEGER, MOST_INTEGER = -(1 << 63), (1 << 63) - 1
"""The integers that a manifest may hold: those of the tables' widest columns."""


@record_class
class Manifest:
    """The fields of ``manifest.json``, as SPEC.md "Manifest" describes them.

    None stands for "unknown". ``extra`` holds keys that this version does not know; they are written again.
    """

    uuid: str
    state: str = "recording"
    format_version: str = FORMAT_VERSION
    created_utc: str | None = None
    tachograph_version: str | None = None
    host: str | None = None
    os: str | None = None
    machine: str | None = None
    cpu_count: int | None = None
    clock: dict[str, Any] | None = None
    argv: list[str] = field(factory=list)
    labels: dict[str, str] = field(factory=dict)
    parameters: dict[str, Any] = field(factory=dict)
    sampler_cost: dict[str, Any] = field(factory=dict)
    quality: list[dict[str, Any]] = field(factory=list)
    tables: dict[str, dict[str, Any]] = field(factory=dict)
    ended_ns: int | None = None
    notes: list[str] = field(factory=list)
    window: dict[str, Any] | None = None
    extra: dict[str, Any] = field(factory=dict)

    @classmethod
    def read(cls, path: str | PathLike[str], where: str | None = None) -> Manifest:
        """Read a manifest file; ``where`` is what messages call it, if not ``path``.

        Errors:
            FormatError: it cannot be read, is not a manifest, or is of a newer major version.
        """
        where = fspath(path) if where is None else where
        try:
            data = read_regular_file(path, MAX_MANIFEST_SIZE)
        except OSError as error:
            raise FormatError(f"cannot read {where}: {error.strerror}") from error
        return cls.from_bytes(data, where)

    @classmethod
    def from_bytes(cls, data: bytes, where: str = MANIFEST_NAME) -> Manifest:
        """Make a manifest of the bytes of its file; ``where`` is for messages.

        Errors:
            FormatError: as ``read``.
        """
        import json  # not to write one: see plain_records.py

        try:
            document = _clean(json.loads(data.decode("utf-8"), parse_int=_integer))
        except (ValueError, RecursionError) as error:
            raise FormatError(
                f"{where} is not a manifest ({error}): this is not a recording, or a damaged one"
            ) from None
        if not isinstance(document, dict):
            raise FormatError(f"{where} is not a JSON object: this is not a recording")
        _check_version(document.get("format_version"), where)
        fields = fields_of(cls).keys() - {"extra"}
        for name in ("uuid", "state"):
            if name not in document:
                raise FormatError(f"{where} has no {name!r}: this is not a recording, or a damaged one")
        for name, value in document.items():
            if name in fields:
                _check_value(name, value, where)
        extra = {name: value for name, value in document.items() if name not in fields}
        return cls(**{name: value for name, value in document.items() if name in fields}, extra=extra)

    def to_bytes(self) -> bytes:
        """The bytes of the file."""
        document = {name: getattr(self, name) for name in fields_of(self) if name != "extra"}
        if self.window is None:
            del document["window"]
        if not self.labels:
            del document["labels"]
        return (to_json(_clean({**document, **self.extra})) + "\n").encode()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the file, readable by its owner only; it appears or changes at once.

        Errors:
            OSError: it cannot be written.
        """
        write_bytes(path, self.to_bytes())


STATES = ("recording", "complete", "recovered")
_INTEGERS = {"cpu_count", "ended_ns"}
_OBJECTS = {"clock", "parameters", "sampler_cost", "window"}
_REQUIRED_OBJECTS = {"parameters", "sampler_cost"}
_TEXT_LISTS = {"argv", "notes"}


def _clean(value: Any) -> Any:
    """The value with lone surrogates, which can be neither encoded nor printed, written as escapes."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    return value


def _integer(digits: str) -> int:
    """An integer of a manifest; a ValueError for one of more than 64 bits, which no field can have."""
    if len(digits) > 20 or not LEAST_INTEGER <= (value := int(digits)) <= MOST_INTEGER:
        raise ValueError(f"an integer has more than 64 bits: {digits[:24]}")
    return value


def _check_version(version: object, where: str) -> None:
    if not isinstance(version, str):
        raise FormatError(f"{where} has no format_version: this is not a tachograph recording")
    major, dot, minor = version.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal() and version.isascii() and len(version) < 20):
        raise FormatError(f"{where}: format_version is {version[:40]!r}, not MAJOR.MINOR")
    ours = int(FORMAT_VERSION.partition(".")[0])
    if int(major) > ours:
        raise NewerVersionError(
            f"the recording has format version {version}, this tachograph reads {ours}.x: use a newer tachograph"
        )
    if int(major) < 1:
        raise FormatError(f"{where}: there is no format version {version}")


def _check_value(name: str, value: Any, where: str) -> None:
    """Refuse values of other types than the fields have, so that no reader needs to check again."""
    if name in ("uuid", "format_version"):
        good = isinstance(value, str)
    elif name == "state":
        good = value in STATES
    elif name in _INTEGERS:
        good = value is None or _is_count(value)
    elif name in _OBJECTS:
        good = value is None if not isinstance(value, dict) else _is_object(name, value)
        good = good and (value is not None or name not in _REQUIRED_OBJECTS)
    elif name == "labels":
        good = isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
    elif name in _TEXT_LISTS:
        good = isinstance(value, list) and all(isinstance(each, str) for each in value)
    elif name == "quality":
        good = isinstance(value, list) and all(_is_loss(each) for each in value)
    elif name == "tables":
        good = isinstance(value, dict) and all(_is_table(each) for each in value.values())
    else:
        good = value is None or isinstance(value, str)
    if not good:
        raise FormatError(f"{where}: {name} has a value that it cannot have: {_short(value)}")


def _is_object(name: str, value: dict[str, Any]) -> bool:
    if name == "window":
        times = [value.get(key) for key in ("start_ns", "end_ns")]
        numbers = [value.get(key) for key in ("number", "first")]
        return all(_is_count(number) for number in numbers) and all(time is None or _is_count(time) for time in times)
    return name != "clock" or all(type(value.get(key)) is int for key in ("monotonic_ns", "utc_ns"))


def _is_loss(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("loss"), str)
        and type(entry.get("count")) is int
        and (entry.get("process") is None or type(entry["process"]) is int)
    )


def _is_table(entry: Any) -> bool:
    return isinstance(entry, dict) and all(_is_count(entry.get(key)) for key in ("rows", "bytes"))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

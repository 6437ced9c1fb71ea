"""The manifest keeps what it does not know, and refuses what it cannot be, in one line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tachograph.format import FormatError, Manifest

MINIMAL = {"format_version": "1.0", "uuid": "u", "state": "complete"}


def digits(number: int) -> str:
    """The digits of a number of any size."""
    return str(number) if abs(number) < 10**4000 else "1" + "0" * 5000


def len_of(number: int) -> str:
    return f"{number.bit_length()} bits{' below 0' if number < 0 else ''}"


def parse(**changes: Any) -> Manifest:
    return Manifest.from_bytes(json.dumps({**MINIMAL, **changes}).encode())


def test_round_trip_keeps_unknown_keys(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    first = parse(format_version="1.9", weather={"clouds": [1, None]}, argv=["a", "\u00e9"], parameters={"new": 1})
    first.write(path)
    second = Manifest.read(path)
    assert second == first
    assert second.extra == {"weather": {"clouds": [1, None]}}
    assert second.format_version == "1.9"
    second.notes.append("more")
    second.write(path)
    assert json.loads(path.read_bytes())["weather"] == {"clouds": [1, None]}
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_files_are_the_owners_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        parse().write(tmp_path / "manifest.json")
    finally:
        os.umask(old)
    assert (tmp_path / "manifest.json").stat().st_mode & 0o777 == 0o600


def test_a_temporary_file_left_or_planted_is_no_obstacle(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep")
    (tmp_path / ".tmp-manifest.json").symlink_to(target)
    parse().write(tmp_path / "manifest.json")
    assert target.read_text() == "keep"
    assert Manifest.read(tmp_path / "manifest.json").uuid == "u"


def test_surrogates_in_argv_are_escaped(tmp_path: Path) -> None:
    Manifest("u", argv=["caf\udce9"]).write(tmp_path / "m.json")
    assert json.loads((tmp_path / "m.json").read_bytes())["argv"] == ["caf\\udce9"]
    assert parse(notes=["a\ud800"], more={"a\udfff": ["\udfff"]}).extra == {"more": {"a\\udfff": ["\\udfff"]}}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{",
        b"{}",
        b"[" * 100_000,
        b'{"format_version": "1.0"}',
        b'{"format_version": 1, "uuid": "u", "state": "complete"}',
        b'{"format_version": "one", "uuid": "u", "state": "complete"}',
        b'{"format_version": "0.9", "uuid": "u", "state": "complete"}',
        b'{"format_version": "1.\xd9\xa3", "uuid": "u", "state": "complete"}',
    ],
)
def test_bad_manifests(data: bytes) -> None:
    with pytest.raises(FormatError) as error:
        Manifest.from_bytes(data)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "done"},
        {"uuid": 5},
        {"state": ["complete"]},
        {"cpu_count": "2"},
        {"cpu_count": True},
        {"ended_ns": -1},
        {"clock": {}},
        {"clock": {"monotonic_ns": 1.5, "utc_ns": 2}},
        {"argv": "python"},
        {"argv": [1]},
        {"parameters": None},
        {"quality": [{"loss": "x"}]},
        {"quality": [{"loss": "x", "count": "many"}]},
        {"tables": {"cpu": {"rows": -1, "bytes": 0}}},
        {"tables": []},
        {"host": 5},
        {"window": {"number": 1, "first": 1, "start_ns": -1}},
        {"window": {"number": -1, "first": 1}},
    ],
)
def test_values_of_other_types(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=next(iter(changes))) as error:
        parse(**changes)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1, 10**400, -(10**400), 10**5000], ids=len_of)
@pytest.mark.parametrize(
    "place",
    [
        '"window": {"number": 1, "first": 1, "start_ns": %s}',
        '"window": {"number": %s, "first": 1}',
        '"clock": {"monotonic_ns": %s, "utc_ns": 1}',
        '"clock": {"monotonic_ns": 1, "utc_ns": %s}',
        '"sampler_cost": {"handler_cpu_ns": %s}',
        '"sampler_cost": {"processes": [{"process": 0, "own_bytes": %s}]}',
        '"quality": [{"process": %s, "loss": "x", "count": 1}]',
        '"quality": [{"process": 0, "loss": "x", "count": %s}]',
        '"parameters": {"interval_ns": %s}',
        '"ended_ns": %s',
        '"what_a_later_version_adds": [%s]',
    ],
)
def test_integers_of_more_than_64_bits(place: str, number: int) -> None:
    text = json.dumps(MINIMAL)[:-1] + ", " + place % digits(number) + "}"
    with pytest.raises(FormatError, match="more than 64 bits") as error:
        Manifest.from_bytes(text.encode())
    assert len(str(error.value)) < 300


def test_newer_major_names_both_versions() -> None:
    with pytest.raises(FormatError, match=r"version 2\.3, this tachograph reads 1\.x"):
        parse(format_version="2.3")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot read"):
        Manifest.read(tmp_path / "manifest.json")
    with pytest.raises(FormatError):
        Manifest.read(tmp_path)


def test_labels() -> None:
    assert parse().labels == {}
    assert b"labels" not in parse().to_bytes()
    labelled = parse(labels={"version": "1.4"})
    assert Manifest.from_bytes(labelled.to_bytes()).labels == {"version": "1.4"}
    others: tuple[object, ...] = (None, [], "version=1.4", {"version": 1.4}, {"version": None})
    for bad in others:
        with pytest.raises(FormatError, match="labels has a value that it cannot have"):
            parse(labels=bad)

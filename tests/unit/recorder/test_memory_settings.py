"""What is recorded of memory: sizes as they are typed, and what the program and the manifest are told."""

import re
from pathlib import Path

import pytest

from tachograph.recorder.command import launch
from tachograph.recorder.command.launch import Settings
from tachograph.recorder.command.manifests import manifest_parameters
from tachograph.recorder.command.option_values import (
    DEFAULT_THRESHOLD,
    RATES,
    parse_threshold,
)
from tachograph.recorder.command.options import Options
from tachograph.recorder.inprocess.configuration import take_from
from tachograph.recorder.inprocess.process_filter import split_patterns

SHIM = Path(__file__).resolve().parents[3] / "native" / "shim"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65_536),
        ("64K", 65_536),
        ("64k", 65_536),
        (" 1M ", 1 << 20),
        ("10485767", 10_485_767),
        ("3G", 3 << 30),
        ("1024G", 1 << 40),
        ("1T", 1 << 40),
        ("1.5M", 3 << 19),
        ("1 M", 1 << 20),
        ("10MB", 10_000_000),
        ("64 KiB", 65_536),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_threshold(text) == size


NO_SIZES = ["", "M", "1.M", ".5M", "10mb", "-1M", "1e7", "0x10000", "\u0661M", "1M\n2M", "1_000_000", "1m2", "10s"]


@pytest.mark.parametrize("text", NO_SIZES)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of bytes such as") as caught:
        parse_threshold(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["0", "65535", "63K", "1025G", "9" * 15 + "G"])
def test_what_is_too_small_or_too_large(text: str) -> None:
    with pytest.raises(ValueError, match="is not between 64K and 1024G"):
        parse_threshold(text)


def test_the_threshold_is_the_first_prime_above_10_mib() -> None:
    def prime(number: int) -> bool:
        return all(number % divisor for divisor in range(2, int(number**0.5) + 1))

    assert prime(DEFAULT_THRESHOLD)
    assert not any(prime(number) for number in range((10 << 20) + 1, DEFAULT_THRESHOLD))


@pytest.mark.parametrize(("memory", "told"), [(True, "1"), (False, "0")])
def test_the_program_is_told(memory: bool, told: str) -> None:
    values = Options(memory=memory, memory_threshold=65_536, include=("a,b", "c:*"), native_depth=32).as_settings(
        "setting"
    )
    settings = Settings("/spool", {"segment": 1 << 20, **values}, "/lib.so")
    environment = settings.environment({"HOME": "/"})
    taken = take_from(environment)
    config = taken.values
    # The library takes itself out of LD_PRELOAD, in every program.
    assert (environment, taken.spool) == ({"HOME": "/", "LD_PRELOAD": "/lib.so"}, "/spool")
    assert (config["memory"], config.get("threshold")) == (told, "65536" if memory else None)
    assert config["native_depth"] == "32"
    assert (config["interval_ns"], config["segment"], config["sampler"]) == ("10000000", "1048576", "native")
    assert split_patterns(config["include"]) == ["a,b", "c:*"]
    assert split_patterns(config["home"]) == [str(Path(launch.__file__).parent.parent)]
    assert not {"rotate", "exclude", "fd_broker"} & config.keys()


def test_the_manifest_is_told() -> None:
    told = manifest_parameters(Options(memory_threshold=65_536), 1 << 20)
    assert {**told, **RATES, "memory": True, "touched": True, "memory_threshold": 65_536, "waits": True} == told
    without = manifest_parameters(Options(sampler="signal"), 1 << 20)
    assert (without["memory"], without["waits"], without["segment_size"]) == (False, False, 1 << 20)
    assert not {"memory_threshold", "schedule", "touched", *RATES} & without.keys()


@pytest.mark.parametrize(
    ("file", "constant", "value"),
    [
        ("memory/heap.cpp", "kFinestMean", RATES["block_mean_bytes"]),
        ("copies/copies.cpp", "kFinestMean", RATES["copies_mean_bytes"]),
        ("copies/copies.h", "kShortest", RATES["copies_min_bytes"]),
    ],
)
def test_the_manifest_says_what_the_native_recorder_does(file: str, constant: str, value: int) -> None:
    text = (SHIM / file).read_text(encoding="utf-8")
    (found,) = re.findall(rf"constexpr \w+ {constant} = ([0-9 *]+);", text)
    factors = [int(factor) for factor in found.split("*")]
    product = 1
    for factor in factors:
        product *= factor
    assert product == value

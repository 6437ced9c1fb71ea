"""JSON is written and read as the standard library does it."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest

from tachograph.format.plain_records import IN_ASCII, from_json, to_json

VALUES: list[Any] = [
    None, True, 0, -3, 1 << 63, 1.5, 1e300, math.inf, -math.inf, "", 'a"\\\n\t\x01é\U0001f600\ud800', [], {},
    [[]], [{}], {"a": []}, {"a": {"b": [1, "2", None, {"c": False}]}, "é": [[1], [2, 3]]}, (1, 2),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_it_is_what_json_writes(value: Any) -> None:
    assert to_json(value) == json.dumps(value, indent=1, ensure_ascii=False)
    assert to_json(value, IN_ASCII) == json.dumps(value, indent=1)
    assert to_json(math.nan) == "NaN"


def test_what_has_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="set has no JSON"):
        to_json([{1}])
    with pytest.raises(TypeError):
        to_json({1: 2})


@pytest.mark.parametrize("value", VALUES)
def test_it_is_what_json_reads(value: Any) -> None:
    for text in (to_json(value), to_json(value, IN_ASCII, " "), f" {json.dumps(value)}\n"):
        assert from_json(text) == json.loads(text)
    assert math.isnan(from_json("NaN"))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "\n", "{", "{}x", "[1,]", '{"a"}', "x", '"\n"', "[1] [2]", "'a'"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_json(text)


def test_it_is_read_where_a_program_has_another_json() -> None:
    """Its own errors are json's, which is then another module."""
    code = """
import sys
from tachograph.format.plain_records import from_json
sys.modules["json"] = sys.modules["json.decoder"] = None
print(from_json('{"a": [1, "x"]}'))
try:
    from_json("[1,]")
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{'a': [1, 'x']}\nit is not JSON\n", "")

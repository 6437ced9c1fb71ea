"""JSON is written as the standard library writes it."""

import json
import math
from typing import Any

import pytest

from tachograph.format.plain_records import IN_ASCII, to_json

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

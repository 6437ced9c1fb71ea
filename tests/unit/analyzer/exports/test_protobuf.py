"""The writer of protocol buffers against the protobuf library's own encoder."""

from __future__ import annotations

import pytest
from google.protobuf.internal import encoder

from tachograph.analyzer.exports.protobuf import Message, varint


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**63 - 1])
def test_varints(number: int) -> None:
    assert varint(number) == encoder._VarintBytes(number)


def test_negative_numbers_are_two_s_complement() -> None:
    pieces: list[bytes] = []
    encoder._EncodeSignedVarint(pieces.append, -5)
    assert varint(-5) == b"".join(pieces)


def test_fields() -> None:
    # The examples of the encoding's documentation.
    assert Message().number(1, 150).to_bytes() == bytes.fromhex("089601")
    assert Message().text(2, "testing").to_bytes() == bytes.fromhex("120774657374696e67")
    assert Message().message(3, Message().number(1, 150)).to_bytes() == bytes.fromhex("1a03089601")
    assert Message().packed(6, [3, 270, 86942]).to_bytes() == bytes.fromhex("3206038e029ea705")

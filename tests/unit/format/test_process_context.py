"""The payload of OpenTelemetry's process context: which attributes of its resource are kept, and what damage does."""

from __future__ import annotations

import json
import random

import pytest

from tachograph.format.spool.process_context import KEPT, LONGEST, LONGEST_VALUE, resource_text


def varint(number: int) -> bytes:
    parts = []
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


def field(number: int, value: bytes | int) -> bytes:
    """A field of Protocol Buffers: a whole number, or a message or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(key: str, value: bytes) -> bytes:
    return field(1, field(1, key.encode()) + field(2, value))


def text(value: str) -> bytes:
    return field(1, value.encode())


def context(*attributes: bytes) -> str:
    """A ``ProcessContext`` in hexadecimal: a resource, and an attribute of the context's own behind it."""
    own = field(2, field(1, b"threadlocal.schema_version") + field(2, text("tls_v1")))
    return (field(1, b"".join(attributes)) + own).hex()


def test_attributes_of_a_service_are_kept() -> None:
    digits = context(
        attribute("service.name", text("shop")),
        attribute("service.instance.id", text("5f3c")),
        attribute("k8s.pod.restarts", field(3, 7)),
        attribute("host.offset", field(3, (1 << 64) - 2)),
        attribute("process.command_args", text("--password=secret")),
        attribute("service.debug", field(2, 1)),
        attribute("service.load", b"\x21" + bytes(8)),
        attribute("service.tags", field(5, field(1, text("a")))),
    )
    kept = {"service.name": "shop", "service.instance.id": "5f3c", "k8s.pod.restarts": 7, "host.offset": -2}
    assert json.loads(resource_text(digits) or "") == kept


def test_it_is_what_opentelemetry_writes() -> None:
    resources = pytest.importorskip("opentelemetry.proto.resource.v1.resource_pb2")
    resource = resources.Resource()
    for name, value in (
        ("service.name", "Laden für Bücher"),
        ("telemetry.sdk.language", "python"),
        ("os.type", "linux"),
    ):
        resource.attributes.add(key=name).value.string_value = value
    resource.attributes.add(key="container.count").value.int_value = -3
    resource.dropped_attributes_count = 2
    found = resource_text(field(1, resource.SerializeToString()).hex())
    expected = {"service.name": "Laden für Bücher", "telemetry.sdk.language": "python", "container.count": -3}
    assert json.loads(found or "") == expected
    assert found is not None
    assert found.isascii()


def test_it_is_bounded() -> None:
    assert json.loads(resource_text(context(attribute("service.name", text("x" * 999)))) or "") == {
        "service.name": "x" * LONGEST_VALUE
    }
    many = [attribute(f"service.{number:03}", text("y" * 150)) for number in range(100)]
    found = resource_text(context(*many)) or ""
    assert LONGEST - 200 < len(found) <= LONGEST
    assert resource_text(context(attribute("service." + "n" * 99, text("x")))) is None


@pytest.mark.parametrize("digits", [None, "", "0", "zz", "ff", "0aff", "0b", context(), "08" + "ff" * 11])
def test_nothing_is_null(digits: str | None) -> None:
    assert resource_text(digits) is None


def test_damage_is_null_or_other_attributes() -> None:
    whole = bytes.fromhex(context(attribute("service.name", text("shop")), attribute("k8s.pod.name", text("a-1"))))
    randomness = random.Random(7)
    for _ in range(3000):
        damaged = bytearray(whole[: randomness.randrange(len(whole) + 1)])
        for _ in range(randomness.randrange(3)):
            if damaged:
                damaged[randomness.randrange(len(damaged))] = randomness.randrange(256)
        found = resource_text(damaged.hex())
        assert found is None or all(name.startswith(KEPT) for name in json.loads(found))

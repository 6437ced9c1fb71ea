"""A plugin of pytest for tests under qemu's user-mode emulation: skips what the emulator cannot do, with the reason.

Loaded by ``make test-arm`` alone.
"""

import pytest

CANNOT: dict[str, dict[str, str]] = {}
"""Reasons, and under each the beginnings of the ids of tests, with what of it a test needs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what cannot be run."""
    for item in items:
        for reason, tests in CANNOT.items():
            for beginning, need in tests.items():
                if item.nodeid.startswith(f"tests/{beginning}"):
                    item.add_marker(pytest.mark.skip(reason=f"qemu: {reason} ({need})" if need else f"qemu: {reason}"))

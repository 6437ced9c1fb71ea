"""Fixtures of the native tests."""

import sys
from pathlib import Path

import pytest

from native import building


@pytest.fixture(scope="session", autouse=True)
def _only_where_recording_is() -> None:
    if sys.platform != "linux":
        pytest.skip("the recorder is for Linux")


# Each takes half a minute to compile, and its programs as long. The recorder as it is built for users, without
# sanitizers, is what the tests of recorded programs run.
VARIANTS = [
    pytest.param(each, id=each.name, marks=[] if each is building.ADDRESS else [pytest.mark.slow])
    for each in building.VARIANTS
]


@pytest.fixture(scope="session", params=VARIANTS)
def variant(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> building.Variant:
    """Each set of sanitizers that works here."""
    found: building.Variant = request.param
    reason = building.can_build(found, tmp_path_factory.mktemp("probe"))
    if reason and found is building.ADDRESS:
        return building.PLAIN
    if reason:
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def program(variant: building.Variant, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program of a variant."""
    return building.test_program(variant, tmp_path_factory.mktemp("program") / "tests")

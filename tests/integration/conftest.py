"""Fixtures of the integration tests."""

from pathlib import Path

import pytest

from integration import support
from oracle.support import LIBRARY_SOURCE


@pytest.fixture(scope="session")
def has_native() -> bool:
    """Whether the native recorder is installed."""
    return support.native_recorder()


@pytest.fixture(autouse=True)
def _skip_native(request: pytest.FixtureRequest, has_native: bool) -> None:
    if request.node.get_closest_marker("native") and not has_native:
        pytest.skip("built without the native recorder")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C library of the programs that need one."""
    built = support.compile_library(LIBRARY_SOURCE, tmp_path_factory.mktemp("library"))
    if built is None:
        pytest.skip("no C or C++ compiler")
    return built


@pytest.fixture(params=[pytest.param("native", marks=pytest.mark.native), "signal"])
def sampler(request: pytest.FixtureRequest) -> str:
    """Both samplers, for what neither may disturb."""
    return str(request.param)

"""One recording of each program serves every test that asks something of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oracle import support

Recorder = Callable[..., support.Run]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C library of the programs that need one."""
    built = support.compile_library(support.LIBRARY_SOURCE, tmp_path_factory.mktemp("library"))
    if built is None:
        pytest.skip("no C or C++ compiler")
    return built


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """``recorded(program, *arguments, sampler=..., interval=...)``: recorded once, however often it is asked for."""
    runs: dict[tuple[object, ...], support.Run | AssertionError] = {}

    def once(program: str, *arguments: str, sampler: str = "native", interval: float = 5) -> support.Run:
        if sampler == "native" and not support.native_recorder():
            pytest.skip("built without the native recorder")
        key = (program, arguments, sampler, interval)
        if key not in runs:
            folder = tmp_path_factory.mktemp(Path(program).stem)
            try:
                runs[key] = support.record(folder, program, *arguments, sampler=sampler, interval=interval)
            except AssertionError as error:
                runs[key] = error
        run = runs[key]
        if isinstance(run, AssertionError):  # a recording that failed is not tried again for each of its tests
            raise run
        return run

    return once

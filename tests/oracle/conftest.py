"""One recording of each program serves every test that asks something of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from oracle import support

Recorder = Callable[..., support.Run]


def compiled(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C file as a shared library; skips where nothing compiles it."""
    built = support.compile_library(source, tmp_path_factory.mktemp("library"))
    if built is None:
        pytest.skip("no C or C++ compiler")
    return built


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C library of the programs that need one."""
    return compiled(support.LIBRARY_SOURCE, tmp_path_factory)


@pytest.fixture(scope="session")
def allocations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C library of the memory programs."""
    return compiled(support.ALLOCATIONS_SOURCE, tmp_path_factory)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """``recorded(program, *arguments, sampler=, interval=, options=)``: once, however often it is asked for."""
    runs: dict[tuple[object, ...], support.Run | AssertionError] = {}

    def once(
        program: str,
        *arguments: str,
        sampler: str = "native",
        interval: float = 5,
        options: tuple[str, ...] = (),
    ) -> support.Run:
        if sampler == "native" and not support.native_recorder():
            pytest.skip("built without the native recorder")
        key = (program, arguments, sampler, interval, options)
        if key not in runs:
            folder = tmp_path_factory.mktemp(Path(program).stem)
            try:
                runs[key] = support.record(
                    folder, program, *arguments, sampler=sampler, interval=interval, options=options
                )
            except AssertionError as error:
                runs[key] = error
        run = runs[key]
        if isinstance(run, AssertionError):  # a recording that failed is not tried again for each of its tests
            raise run
        return run

    return once

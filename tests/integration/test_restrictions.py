"""The restrictions of containers, one by one; ``make soak ARGS='--only containers'`` tries more programs."""

from pathlib import Path

import pytest

from integration import restrictions

pytestmark = pytest.mark.native


QUICK = ("docker", "read-only-root", "address-space", "open-files")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in restrictions.NAMES]
)
def test_output_and_end_are_as_bare(tmp_path: Path, name: str) -> None:
    try:
        restrictions.compare(tmp_path, name)
    except restrictions.ImpossibleError as error:
        pytest.skip(str(error))

"""The installer of the Makefile: uv is told what pip is told."""

import install
import pytest

LISTING = """\
:env:.find-links='/more wheels'
:env:.disable-pip-version-check='1'
global.constraint='/etc/constraints.txt'
global.extra-index-url='https://one/simple https://two/simple'
global.find-links='/wheels'
install.index-url='https://own/simple'
"""


def test_places_and_bounds_of_pip() -> None:
    assert install.uv_options(LISTING) == [
        "--index-url=https://own/simple",
        "--extra-index-url=https://one/simple",
        "--extra-index-url=https://two/simple",
        "--find-links=/more",
        "--find-links=wheels",
        "--constraint=/etc/constraints.txt",
    ]


@pytest.mark.parametrize(("value", "options"), [("true", ["--no-index"]), ("1", ["--no-index"]), ("0", [])])
def test_no_index(value: str, options: list[str]) -> None:
    assert install.uv_options(f"global.no-index='{value}'") == options


def test_nothing_is_set() -> None:
    assert install.uv_options("") == []


@pytest.mark.recording
def test_what_cannot_be_installed_is_left_to_pip() -> None:
    assert not install.with_uv(["--no-index", "no-package-has-this-name"])

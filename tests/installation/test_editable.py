"""An editable install serves the sources from the checkout, under their import names."""

from pathlib import Path

import pytest

from installation.support import ROOT, WITHOUT_NATIVE, environment, pip, run

FOLDERS = {"tachograph": "src/tachograph", "recorder": "recorder", "analyzer": "analyzer", "format": "format-spec"}
ARMED = "import sys; print('tachograph.recorder.inprocess.arm' in sys.modules)"
STANDS_BY = "import sys; print('tachograph.recorder.attached.standby' in sys.modules)"


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment in which the checkout is installed, editable."""
    folder = tmp_path_factory.mktemp("editable")
    programs = environment(folder / "venv")
    pip("--editable", ROOT, *WITHOUT_NATIVE, cwd=folder, python=programs / "python")
    return programs


def test_sources_are_those_of_the_checkout(editable: Path, tmp_path: Path) -> None:
    modules = "tachograph, tachograph.recorder, tachograph.analyzer, tachograph.format"
    code = f"import {modules}\nfor module in ({modules}): print(module.__name__, module.__file__)"
    answer = run(editable / "python", "-c", code, cwd=tmp_path)
    found = dict(line.split(" ", 1) for line in answer.stdout.splitlines())
    assert {name.split(".")[-1]: Path(path).resolve() for name, path in found.items()} == {
        name: ROOT / folder / "__init__.py" for name, folder in FOLDERS.items()
    }
    run(editable / "tachograph", "--version", cwd=tmp_path)


@pytest.mark.parametrize(
    ("variable", "code"), [("TACHOGRAPH_SPOOL=missing", ARMED), ("TACHOGRAPH_STANDBY=1", STANDS_BY)]
)
def test_an_interpreter_asks_at_its_start(editable: Path, tmp_path: Path, variable: str, code: str) -> None:
    """On CPython 3.15 the checkout's modules are found only after all .pth files were read (PEP 829)."""
    python = editable / "python"
    asked, plain = run("env", variable, python, "-c", code, cwd=tmp_path), run(python, "-c", code, cwd=tmp_path)
    assert (asked.stdout, asked.stderr) == ("True\n", "")
    assert (plain.stdout, plain.stderr) == ("False\n", "")

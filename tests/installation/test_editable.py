"""An editable install serves the sources from the checkout, under their import names."""

from pathlib import Path

from installation.support import ROOT, WITHOUT_NATIVE, environment, pip, run

FOLDERS = {"tachograph": "command", "recorder": "recorder", "analyzer": "analyzer", "format": "format-spec"}


def test_sources_are_those_of_the_checkout(tmp_path: Path) -> None:
    programs = environment(tmp_path / "venv")
    pip("--editable", ROOT, *WITHOUT_NATIVE, cwd=tmp_path, python=programs / "python")
    modules = "tachograph, tachograph.recorder, tachograph.analyzer, tachograph.format"
    code = f"import {modules}\nfor module in ({modules}): print(module.__name__, module.__file__)"
    answer = run(programs / "python", "-c", code, cwd=tmp_path)
    found = dict(line.split(" ", 1) for line in answer.stdout.splitlines())
    assert {name.split(".")[-1]: Path(path) for name, path in found.items()} == {
        name: ROOT / folder / "__init__.py" for name, folder in FOLDERS.items()
    }
    run(programs / "tachograph", "--version", cwd=tmp_path)

"""Versions of the distributions that code came from, read from their metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from tachograph.recorder.collect.installed_versions import versions

pytestmark = pytest.mark.broad


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages, of which some are named like their modules."""
    site = tmp_path / "lib" / "python3.13" / "site-packages"
    for name, files in {
        "textkit-2.0.1.dist-info": {},
        "Flask_Login-0.6.dist-info": {},
        "PyYAML-6.0.2.dist-info": {"top_level.txt": "_yaml\nyaml\n"},
        "pillow-11.0.dist-info": {"RECORD": "../../bin/x,,\nPIL/Image.py,sha256=x,1\npillow.libs/a.so,,\n"},
        "unused-1.0.dist-info": {"top_level.txt": "unused\n"},
        "old-1.2-py3.13.egg-info": {},
    }.items():
        (site / name).mkdir(parents=True)
        for file, text in files.items():
            (site / name / file).write_text(text)
    return site


def test_of_the_code_that_ran(site: Path) -> None:
    paths = ["textkit/core.py", "flask_login/__init__.py", "yaml/loader.py", "PIL/_imaging.cpython-313.so", "none/x.py"]
    found = versions([*(f"{site}/{path}" for path in paths), "/srv/app.py", "<string>"])
    assert found == {"Flask_Login": "0.6", "PyYAML": "6.0.2", "pillow": "11.0", "textkit": "2.0.1"}


def test_a_single_module_and_what_cannot_be_read(site: Path) -> None:
    (site / "six-1.17.dist-info").mkdir()
    (site / "PyYAML-6.0.2.dist-info" / "top_level.txt").unlink()
    (site / "PyYAML-6.0.2.dist-info" / "top_level.txt").symlink_to("/etc/hosts")
    assert versions([f"{site}/six.py", f"{site}/yaml/loader.py"]) == {"six": "1.17"}
    assert versions(["/nowhere/site-packages/six.py"]) == {}
    assert versions([]) == {}

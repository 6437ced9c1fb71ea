"""The check of imports finds each kind of import that is forbidden."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="it is one of the tools of [dev]")

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {
    "src/tachograph": (),
    "format-spec": (),
    "recorder": (
        "attached",
        "inprocess",
        "interpreter_start",
        "clock",
        "collect",
        "command",
        "fd_broker",
        "gpu",
        "labels",
        "problems",
        "rotation",
        "upload",
    ),
    "analyzer": (
        "source_code",
        "statistics",
        "recording",
        "samples",
        "conclusions",
        "profile",
        "report_data",
        "render",
        "render/figures",
        "render/html",
        "render/json_document",
        "render/markdown",
        "render/terminal",
        "exports",
        "exports/scrub",
        "exports/extract",
        "exports/frame_tree",
        "exports/exported_rows",
        "diff",
        "api",
        "fleet",
        "commands",
    ),
}


def test_each_folder_with_modules_is_a_package() -> None:
    """Without an ``__init__.py`` the contracts do not see it."""
    source = [ROOT / "src/tachograph", ROOT / "recorder", ROOT / "analyzer", ROOT / "format-spec"]
    folders = {path.parent for top in source for path in top.rglob("*.py")}
    assert len(folders) > 40
    assert [str(each) for each in sorted(folders) if not (each / "__init__.py").exists()] == []


def check(*arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "lint_imports.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def build(root: Path) -> Path:
    """All packages, empty, with this repository's contracts."""
    shutil.copy(ROOT / "pyproject.toml", root)
    for package, parts in PACKAGES.items():
        for folder in (package, *(f"{package}/{part}" for part in parts)):
            (root / folder).mkdir(parents=True)
            (root / folder / "__init__.py").touch()
    for module in ("asgi.py", "clock.py", "opentelemetry.py", "wsgi.py"):
        (root / "recorder" / module).touch()
    for link in ("recorder", "analyzer", "format"):
        (root / "src/tachograph" / link).symlink_to((ROOT / "src/tachograph" / link).readlink())
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.mark.recording
def test_this_repository() -> None:
    """``make check`` has it from its linters, which run beside the tests and read the same tree."""
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_the_analyzer_has_few_packages() -> None:
    """With more a newcomer is lost: a new one goes into a package, or takes the place of one."""
    packages = [each.name for each in (ROOT / "analyzer").iterdir() if each.name != "__pycache__"]
    assert len(packages) <= 14, sorted(packages)


def test_empty_packages(project: Path) -> None:
    done = check(project)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = [
    ("analyzer/api/a.py", "import tachograph.recorder", "tachograph.analyzer.api.a -> tachograph.recorder"),
    ("recorder/gpu/b.py", "import tachograph.analyzer", "tachograph.recorder.gpu.b -> tachograph.analyzer"),
    ("format-spec/c.py", "def f():\n    import tachograph.recorder", "tachograph.format.c -> tachograph.recorder"),
    (
        "analyzer/samples/d.py",
        "from ..profile import x",
        "tachograph.analyzer.samples.d -> tachograph.analyzer.profile",
    ),
    ("analyzer/diff/e.py", "from ..render import x", "tachograph.analyzer.diff.e -> tachograph.analyzer.render"),
    ("analyzer/render/f.py", "from .. import diff", "tachograph.analyzer.render.f -> tachograph.analyzer.diff"),
    ("analyzer/exports/scrub/g.py", "from ..frame_tree import x", "tachograph.analyzer.exports.scrub.g -> "),
    ("analyzer/render/h.py", "from ..conclusions import x", "render.h -> tachograph.analyzer.conclusions"),
    ("analyzer/render/html/l.py", "from ..terminal import x", "render.html.l -> tachograph.analyzer.render.terminal"),
    ("analyzer/render/figures/m.py", "from ..html import x", "render.figures.m -> tachograph.analyzer.render.html"),
    ("analyzer/render/markdown/n.py", "from .. import json_document", "tachograph.analyzer.render.markdown.n -> "),
    ("analyzer/attic/__init__.py", "", "tachograph.analyzer.attic"),
    ("recorder/collect/i.py", "import pandas", "tachograph.recorder.collect.i -> pandas"),
    ("recorder/inprocess/j.py", "def f():\n    import click", "inprocess.j:2: imports click, but runs inside"),
    ("recorder/inprocess/k.py", "from .. import collect", "k:1: imports tachograph.recorder.collect, but runs inside"),
    ("recorder/__init__.py", "from numpy import array", "recorder:1: imports numpy.array, but runs inside"),
    ("recorder/clock.py", "def f():\n    import numpy", "recorder.clock:2: imports numpy, but runs inside"),
]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The complaints about a project with all that is wrong; one with nothing wrong is the test before."""
    folder = build(tmp_path_factory.mktemp("project"))
    for path, text, _ in WRONG:
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text + "\n", encoding="utf-8")
    done = check(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("said", [said for *_, said in WRONG])
def test_what_is_wrong(complaints: str, said: str) -> None:
    assert said in complaints


def test_what_the_profiled_program_may_import(project: Path) -> None:
    text = "import os\nfrom _json import encode_basestring_ascii\nfrom tachograph.recorder._native import arm\n"
    text += "from . import y\nfrom tachograph.recorder.inprocess import y\nfrom tachograph.recorder import clock\n"
    (project / "recorder/inprocess/x.py").write_text(text, "utf-8")
    (project / "recorder/inprocess/y.py").touch()
    done = check(project)
    assert done.returncode == 0, done.stdout + done.stderr

"""The action for pull requests, run as GitHub's runner does: its step with its variables, in a repository."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from integration.test_compare import write

yaml = pytest.importorskip("yaml")

ACTION = Path(__file__).resolve().parents[2] / ".github" / "actions" / "tachograph"
GH = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in *--jq*) cat "$EARLIER";; *--method*) cat "$(echo "$*" | sed 's/.*body=@//')" >> "$BODIES";; esac
"""


def definition() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    return loaded


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The head of a pull request is five times slower than its base."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for priced in (200_000, 1_000_000):
        write(folder / "bench.py", priced)
        git(folder, "add", "bench.py")
        git(folder, "commit", "--quiet", "--message", f"{priced}")
    return folder


def run(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step; inputs that are not given have their default, as far as it is a plain text."""
    given = {name: each["default"] for name, each in definition()["inputs"].items() if "default" in each}
    given |= inputs
    (step,) = definition()["runs"]["steps"]
    outside = folder.parent
    (outside / "gh").write_text(GH)
    (outside / "gh").chmod(0o755)
    (outside / "earlier").touch()
    variables = {
        "GITHUB_ACTION_PATH": str(ACTION),
        "GITHUB_OUTPUT": str(outside / "output"),
        "GITHUB_STEP_SUMMARY": str(outside / "summary.md"),
        "GATE_REPOSITORY": "owner/shop",
        "GATE_PULL_REQUEST": "7",
        "PATH": os.pathsep.join([str(outside), sysconfig.get_path("scripts"), os.environ["PATH"]]),
        **{name: str(outside / name.lower()) for name in ("CALLS", "EARLIER", "BODIES")},
        **{f"GATE_{name.upper()}": value for name, value in given.items() if "${{" not in value},
    }
    return subprocess.run(
        ["bash", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_no_input_becomes_code() -> None:
    (step,) = definition()["runs"]["steps"]
    assert "${{" not in step["run"]
    assert {f"${{{{ inputs.{name} }}}}" for name in definition()["inputs"]} <= set(step["env"].values())


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({"command": ""}, "no command: set 'command'"),
        ({"command": "python bench.py"}, "no base: set 'base'"),
        ({"command": "python bench.py", "base": "gone"}, "the base gone is not there: check out with fetch-depth: 0"),
    ],
)
def test_what_is_missing_is_one_line(repository: Path, inputs: dict[str, str], problem: str) -> None:
    done = run(repository, **inputs)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (repository.parent / "calls").exists()


@pytest.mark.native
@pytest.mark.slow
@pytest.mark.parametrize("earlier", ["", "41\n"])
def test_a_slower_head_fails_and_is_commented_on_once(repository: Path, earlier: str) -> None:
    (repository.parent / "earlier").write_text(earlier)
    command = f"'{sys.executable}' bench.py"
    done = run(repository, command=command, base="HEAD~1", time="60s")
    assert done.returncode == 1, done.stderr
    assert (repository.parent / "output").read_text() == "verdict=slower\n"
    calls = (repository.parent / "calls").read_text()
    where = "PATCH repos/owner/shop/issues/comments/41" if earlier else "POST repos/owner/shop/issues/7/comments"
    assert calls.count("--method") == 1
    assert where in calls
    said = (repository.parent / "bodies").read_text()
    assert said == (repository.parent / "summary.md").read_text()
    assert said.startswith("<!-- tachograph -->\n")
    assert "price" in said
    assert (repository / "tachograph-gate").is_dir()

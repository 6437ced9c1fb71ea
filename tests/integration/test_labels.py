"""Labels from the command line, the environment and git reach the recording, its windows and the report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from integration import support


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")
def test_labels_of_a_run(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "work.py").write_text("print(sum(range(300_000)))\n")
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *command], cwd=tmp_path / "src", check=True, env=os.environ | who, timeout=60)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path / "src", check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()
    variables = {"RANK": "3", "TACHOGRAPH_LABELS": "tier=web,token=x", "OTEL_SERVICE_NAME": "shop"}
    options = ("--sampler", sampler, "--label", "version=1.4", "--label", "tier=back")
    done = support.record(["src/work.py"], tmp_path, *options, env=support.environment() | variables)
    assert done.status == 0, done.stderr
    labels = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text())["labels"]
    assert labels.pop("git.dirty", "false") == "false"  # on a busy machine there may be no time to tell
    assert {name: value for name, value in labels.items() if not name.startswith(("slurm.", "k8s."))} == {
        "git.commit": commit,
        "rank": "3",
        "service.name": "shop",
        "tier": "back",
        "token": "***",
        "version": "1.4",
    }
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["recording"]["labels"]["version"] == "1.4"


@pytest.mark.parametrize(
    ("options", "variables", "words"),
    [
        (["--label", "x"], {}, "'x' is not KEY=VALUE"),
        ([], {"TACHOGRAPH_LABELS": "a=1,b"}, "TACHOGRAPH_LABELS: 'b' is not KEY=VALUE"),
    ],
)
def test_what_is_no_label_keeps_the_program_from_starting(
    tmp_path: Path, options: list[str], variables: dict[str, str], words: str
) -> None:
    (tmp_path / "work.py").write_text("open('it-ran', 'w')\n")
    done = support.record(["work.py"], tmp_path, *options, env=support.environment() | variables)
    support.one_line(done, words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work.py"]

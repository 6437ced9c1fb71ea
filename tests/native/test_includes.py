"""The check of the direction of includes finds what it is there to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_includes.py"


def check(*arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECK), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_shim() -> None:
    done = check()
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"base/a.h": "spool/b.h", "spool/b.h": ""}, 'base/a.h: base must not include "spool/b.h"'),
        ({"base/a.h": "base/b.h", "base/b.h": "", "base/b.cpp": "base/a.h"}, "circle: base/a -> base/b -> base/a"),
        ({"attic/a.h": ""}, "attic/a.h: the room attic is not in the table"),
        ({"base/a.h": "b.h", "base/b.h": ""}, 'base/a.h: "b.h" is not a file of the shim'),
    ],
)
def test_what_is_wrong(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, included in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#include "{included}"\n' if included else "#include <cstdint>\n", encoding="utf-8")
    done = check(tmp_path)
    assert (done.returncode, done.stderr) == (1, said + "\n")

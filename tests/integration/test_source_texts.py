"""Source texts in a recording: of what ran, wherever it was imported from, and a word where there is none."""

import json
import os
import sys
import zipapp
from pathlib import Path

import pytest

from integration import support
from integration.test_attach import attach, running

pytestmark = [pytest.mark.native, pytest.mark.recording]

HOT = "def spin(n):\n    t = 0\n    for i in range(n):\n        t += i * i % 7\n    return t\n"
SERVES = """
import hot, sys, time
print("ready", flush=True)
while True: hot.spin(5000)
"""


def texts(recording: Path) -> dict[str, str | None]:
    """The texts by the names of files, the standard library's left out."""
    return {
        os.path.basename(row["path"]): row["source"]
        for row in support.rows(recording, "files")
        if not row["path"].startswith(("<", os.path.dirname(os.__file__)))
    }


def losses(recording: Path) -> dict[str, int]:
    return support.losses(support.analyze(recording, cwd=recording.parent))


@pytest.mark.parametrize("compiled", [True, False])
def test_files_that_were_changed_after_they_were_imported(tmp_path: Path, compiled: bool) -> None:
    """A deployment, and then attach."""
    files = {"hot.py": HOT, "serves.py": SERVES.replace("import hot", "import hot, other")}
    for name, text in {**files, "other.py": "x = 1\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    env = {"PYTHONDONTWRITEBYTECODE": "" if compiled else "1"}
    with running([sys.executable, "serves.py"], tmp_path, env) as process:
        changed = HOT.replace("t = 0", "t = 0  # of the next version") if compiled else "# of the next version\n" + HOT
        (tmp_path / "hot.py").write_text(changed, encoding="utf-8")
        done = attach(process.pid, "--duration", "500ms", "-q", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
    found = texts(tmp_path / "run.tacho")
    assert (found["hot.py"], found["serves.py"]) == (None, files["serves.py"])
    assert losses(tmp_path / "run.tacho")["sources_changed"] == 1


def test_files_that_the_program_makes_itself_have_their_text(tmp_path: Path) -> None:
    program = f"""
import sys
with open("made.py", "w") as file: file.write({HOT!r})
sys.path.insert(0, ".")
import made
made.spin(2_000_000)
"""
    (tmp_path / "makes.py").write_text(program, encoding="utf-8")
    assert support.record(["makes.py"], tmp_path).status == 0
    assert texts(tmp_path / "run.tacho").items() >= {"made.py": HOT, "makes.py": program}.items()
    assert "sources_changed" not in losses(tmp_path / "run.tacho")


@pytest.mark.parametrize("interpreter", [None, "/usr/bin/env python3"])
def test_code_in_an_archive_has_its_text(tmp_path: Path, interpreter: str | None) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "hot.py").write_text(HOT, encoding="utf-8")
    main = "import hot\nprint(hot.spin(3_000_000) > 0)\n"
    (tmp_path / "app" / "__main__.py").write_text(main, encoding="utf-8")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz", interpreter)
    (tmp_path / "app.pyz").chmod(0o644)
    done = support.record(["app.pyz"], tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, "True\n", "")
    assert texts(tmp_path / "run.tacho").items() >= {"hot.py": HOT, "__main__.py": main}.items()
    assert "t += i * i % 7" in support.tachograph("analyze", "run.tacho", cwd=tmp_path).stdout


def test_what_is_left_out_has_its_reason(tmp_path: Path) -> None:
    """A line table and a file that are larger than what is stored."""
    loop = "    t = 0\n    for i in range(2_000_000):\n        t += i * i % 7\n"
    calls = ",".join(f"f({number})" for number in range(40_000))
    (tmp_path / "calls.py").write_text(f"def calls():\n    x = [{calls}]\n{loop}f = str\ncalls()\n", encoding="utf-8")
    (tmp_path / "large.py").write_text(f"def large():\n{loop}large()\n" + "# padding\n" * 500_000, encoding="utf-8")
    (tmp_path / "both.py").write_text("import calls, large\n", encoding="utf-8")
    assert support.record(["both.py"], tmp_path).status == 0
    lost = losses(tmp_path / "run.tacho")
    assert lost["line_tables_too_large"] >= 1
    assert lost["sources_too_large"] == 1


def test_a_module_that_was_imported_by_several_paths_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "hot.py").write_text(HOT, encoding="utf-8")
    (tmp_path / "other").symlink_to("code")
    program = """
import os, sys
for folder in ("code", "other", "other/../code"):
    sys.path.insert(0, os.path.abspath(".") + "/" + folder)
    sys.modules.pop("hot", None)
    import hot
    hot.spin(2_000_000)
"""
    for name in ("a", "b"):
        (tmp_path / "imports.py").write_text(program, encoding="utf-8")
        assert support.record(["imports.py"], tmp_path, output=f"{name}.tacho").status == 0
        program = program.replace('("code", ', "(")
    recording, expected = tmp_path / "a.tacho", f"{tmp_path}/code/hot.py"
    hot = [row for row in support.rows(recording, "files") if row["path"].endswith("hot.py")]
    assert (len(hot), len({row["disk_file"] for row in hot})) == (3, 1)
    files = {str(line["file"]) for line in support.analyze(recording, cwd=tmp_path)["lines"]}
    assert {file for file in files if file.endswith("hot.py")} == {expected}
    page = support.tachograph("analyze", "a.tacho", "--html", "page.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    assert "/other/" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    compared = support.tachograph("diff", "a.tacho", "b.tacho", "--json", "-", cwd=tmp_path)
    places = [row for row in json.loads(compared.stdout)["files"] if str(row["file"]).endswith("hot.py")]
    assert [(row["status"], row["base_file"]) for row in places] == [("same", expected)]

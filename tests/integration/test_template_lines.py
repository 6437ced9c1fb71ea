"""Lines of Jinja's templates: what recordings hold of them is what Jinja says, and reports show them."""

from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader, Template

from integration import support
from integration.programs.template import PAGE, SMALL
from tachograph.analyzer import Question, Recording
from tachograph.analyzer.profile.build import build_profile
from tachograph.analyzer.samples.summary import ALL

PROGRAM = support.PROGRAMS / "template.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    folder = tmp_path_factory.mktemp("templates")
    done = support.record([PROGRAM, folder], folder, "--cpu-only", "--interval", "1")
    assert (done.status, done.stderr) == (0, "")
    return folder


def told(template: Template) -> str:
    """What Jinja says of a template, as its generated code has it."""
    return "&".join(f"{line}={generated}" for line, generated in template.debug_info)


def test_recordings_hold_what_jinja_says(folder: Path) -> None:
    files = {row["file"]: row["path"] for row in support.rows(folder / "run.tacho", "files")}
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True)
    expected = {
        str(folder / "page.html"): told(environment.get_template("page.html")),
        "<template>": told(environment.from_string(SMALL)),
    }
    found: dict[str, set[str | None]] = {}
    for code in support.rows(folder / "run.tacho", "codes"):
        if code["qualname"].split(".")[0] in ("root", "block_foot"):
            found.setdefault(files[code["file"]], set()).add(code["template_lines"])
        elif files[code["file"]].endswith(".py"):
            assert code["template_lines"] is None
    assert found == {path: {text} for path, text in expected.items()}


def test_time_is_on_the_lines_that_do_something(folder: Path) -> None:
    with Recording.open(folder / "run.tacho") as recording:
        lines = build_profile(recording, Question()).lines
    page = lines[(lines["file"] == str(folder / "page.html")) & (lines["cpu_s"] > 0)].set_index("line")
    # A sample may be at an instruction that has no line (MAKE_CELL at the start of a function): the line is unknown.
    page = page[page.index.notna()]
    # The macro, the loop and its call, the block: all else is text.
    assert set(page.index) <= {1, 2, 3, 5, 7, 10, 12}
    assert {3, 7} <= set(page.index)
    for number, source in page["source"].items():
        assert source == PAGE.splitlines()[number - 1]
    with Recording.open(folder / "run.tacho") as recording:
        lines = build_profile(recording, Question(scope=ALL)).lines
    small = lines[(lines["file"] == "<template>") & (lines["cpu_s"] > 0)]
    # What stands before all that Jinja tells of, the beginning of the function, is on the first line for Jinja too.
    assert 3 in set(small["line"].dropna()) <= {1, 3}

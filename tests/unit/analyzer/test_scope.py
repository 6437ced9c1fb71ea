from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from tachograph.analyzer import Profile
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.line_selection import other_functions
from tachograph.analyzer.samples.summary import Scope
from tachograph.format import FormatError
from unit.analyzer.recordings import Builder, table


@pytest.mark.parametrize(
    ("path", "project"),
    [
        ("/srv/app/main.py", True),
        ("relative.py", True),
        ("<string>", True),
        ("<stdin>", True),
        ("<ipython-input-3-abc>", True),
        ("<python-input-3>", True),
        ("/tmp/ipykernel_4/123.py", True),
        ("/home/me/lib/tool.py", True),
        ("C:\\work\\app.py", True),
        ("<frozen importlib._bootstrap>", False),
        ("<attrs generated init app.Thing>", False),
        ("<class 'networkx.utils.decorators.argmap'> compilation 21", False),
        ("/usr/lib/python3.13/json/decoder.py", False),
        ("/usr/lib64/python3.11/re/_parser.py", False),
        ("/opt/free/lib/python3.14t/ast.py", False),
        ("/srv/venv/lib/python3.13/site-packages/numpy/core.py", False),
        ("/usr/lib/python3/dist-packages/apt.py", False),
        ("C:\\Python313\\Lib\\json\\decoder.py", False),
        ("C:\\venv\\Lib\\site-packages\\flask\\app.py", False),
        ("/srv/venv/bin/sphinx-build", False),
        ("/src/tachograph/src/tachograph/recorder/inprocess/arm.py", False),
    ],
)
def test_project(path: str, project: bool) -> None:
    assert Scope("project", ("/srv/venv/bin", "C:/Python313")).includes(path) is project


@pytest.mark.parametrize("path", ["<string>", "<stdin>"])
def test_code_without_a_file_is_the_program_s_where_the_program_begins_in_it(
    builder: Builder, profile: Callable[..., Profile], path: str
) -> None:
    """Under ``python -c`` it is; a script's libraries make such code with exec()."""
    own = builder.code(builder.file(path), "<module>")
    library = builder.code(builder.file("/usr/lib/python3.13/dataclasses.py"), "dataclass")
    builder.cpu(builder.stack((own, 0), (library, 3)))
    assert set(profile(scope="project").lines["file"]) == {path}


def test_code_that_a_library_makes_is_the_line_s_that_called_it(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    script = builder.code(builder.file("/srv/app.py"), "<module>")
    library = builder.code(builder.file("/usr/lib/python3.13/dataclasses.py"), "dataclass")
    made = builder.code(builder.file("<string>"), "__create_fn__")
    builder.cpu(builder.stack((script, 4), (library, 3), (made, 0)))
    lines = profile(scope="project").lines
    assert list(zip(lines["file"], lines["line"], strict=True)) == [("/srv/app.py", 5)]


@pytest.mark.parametrize(
    ("glob", "path", "included"),
    [
        ("numpy", "/venv/site-packages/numpy/lib/io.py", True),
        ("numpy", "/venv/site-packages/numpyish/io.py", False),
        ("io.py", "/venv/site-packages/numpy/lib/io.py", True),
        ("numpy/*.py", "/venv/site-packages/numpy/lib/io.py", True),
        ("/srv/*", "/srv/app/a.py", True),
        ("/srv/*", "/opt/srv/app/a.py", False),
        ("app/", "/srv/app/a.py", True),
        ("a?p", "/srv/app/a.py", True),
        ("[", "/srv/app/a.py", False),
        ("all", "<frozen x>", True),
    ],
)
def test_globs(glob: str, path: str, included: bool) -> None:
    assert Scope(glob).includes(path) is included


@pytest.fixture
def library(builder: Builder) -> Builder:
    """main.py:1 calls a library, which calls back into main.py:5, which calls the library again."""
    own, foreign = builder.file("/srv/main.py"), builder.file("/venv/site-packages/lib/core.py")
    main, back = builder.code(own, "main"), builder.code(own, "callback", 5)
    lib = builder.code(foreign, "work", 10)
    builder.cpu(builder.stack((main, 0)), 10)
    builder.cpu(builder.stack((main, 0), (lib, 1)), 20)
    builder.cpu(builder.stack((main, 0), (lib, 1), (back, 0)), 40)
    builder.cpu(builder.stack((main, 0), (lib, 1), (back, 0), (lib, 2)), 80)
    builder.cpu(builder.stack((lib, 3)), 160)
    return builder


def test_libraries_are_charged_to_the_nearest_caller_in_scope(
    library: Builder, profile: Callable[..., Profile]
) -> None:
    answer = profile(scope="project")
    assert table(answer.lines, "file", "line", "function", "cpu_s", "total_cpu_s") == [
        (None, None, "<other code>", 0.16, 0.16),
        ("/srv/main.py", 5, "callback", 0.12, 0.12),
        ("/srv/main.py", 1, "main", 0.03, 0.15),
    ]
    assert table(answer.functions, "function", "cpu_s", "total_cpu_s") == [
        ("<other code>", 0.16, 0.16),
        ("callback", 0.12, 0.12),
        ("main", 0.03, 0.15),
    ]
    assert table(answer.files, "file", "cpu_s", "total_cpu_s") == [
        ("<other code>", 0.16, 0.16),
        ("/srv/main.py", 0.15, 0.15),
    ]


def test_everything(library: Builder, profile: Callable[..., Profile]) -> None:
    answer = profile(scope="all")
    assert table(answer.lines, "file", "line", "cpu_s", "total_cpu_s") == [
        ("/venv/site-packages/lib/core.py", 13, 0.16, 0.16),
        ("/venv/site-packages/lib/core.py", 12, 0.08, 0.08),
        ("/srv/main.py", 5, 0.04, 0.12),
        ("/venv/site-packages/lib/core.py", 11, 0.02, 0.14),
        ("/srv/main.py", 1, 0.01, 0.15),
    ]


def test_one_package(library: Builder, profile: Callable[..., Profile]) -> None:
    answer = profile(scope="lib")
    assert table(answer.functions, "function", "cpu_s", "total_cpu_s") == [
        ("work", 0.3, 0.3),
        ("<other code>", 0.01, 0.01),
    ]


@pytest.mark.parametrize("scope", ["project", "all", "lib", "main.py"])
def test_no_scope_loses_time(library: Builder, profile: Callable[..., Profile], scope: str) -> None:
    answer = profile(scope=scope)
    for frame in (answer.lines, answer.functions, answer.files, answer.threads):
        assert frame["cpu_s"].sum() == pytest.approx(answer.totals.cpu_s)
        assert frame["samples"].sum() == answer.totals.samples == 5


def test_the_default_widens_if_little_is_the_projects(library: Builder, profile: Callable[..., Profile]) -> None:
    answer = profile()
    assert (answer.scope, answer.widened) == ("all", True)


def test_the_default_is_the_project(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.cpu(builder.stack((builder.code(builder.file("/srv/main.py")), 0)))
    answer = profile()
    assert (answer.scope, answer.widened) == ("project", False)


def test_a_scope_that_matches_nothing_is_an_error(library: Builder, profile: Callable[..., Profile]) -> None:
    with pytest.raises(FormatError, match="no recorded file matches --scope 'nump'"):
        profile(scope="nump")


def test_other_code_can_be_looked_into(library: Builder, profile: Callable[..., Profile]) -> None:
    """What no line in scope called: its functions, the most time first, and how to see all of it."""
    answer = profile(scope="project")
    inside = other_functions(answer)
    assert [(each.name, each.file, round(each.amount, 9)) for each in inside] == [
        ("work", "/venv/site-packages/lib/core.py", 0.16)
    ]
    out = io.StringIO()
    show(answer, Console(file=out, width=100, color_system=None))
    text = " ".join(out.getvalue().split())
    assert "most of <other code>: work core.py:" in text
    assert "(160ms); --scope all shows its lines" in text
    assert other_functions(profile(scope="all")) == []


def test_a_cell_is_in_scope_by_its_name() -> None:
    assert Scope("In [3]").includes("In [3]")
    assert not Scope("In [3]").includes("In [4]")


SHIV = "/home/ada/.shiv/tool_7f3a/site-packages"
WHEELS = "/home/ada/.cache/pex/installed_wheels/3/" + "7e" * 32
VENV = "/home/ada/.pex/venvs/s/4fa3c0/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize("folder", [SHIV, f"{WHEELS}/tool-1.0-py3-none-any.whl", VENV])
def test_the_package_of_a_program_that_unpacks_itself(folder: str) -> None:
    """It is the project's, and what lies beside it is not."""
    scope = Scope(entry_package="tool")
    for path in (f"{folder}/tool/hot.py", f"{folder}/tool.py", f"{folder}/tool/__init__.py"):
        assert scope.includes(path)
        assert not Scope().includes(path)
    for path in (f"{folder}/click/core.py", f"{folder}/toolbox/a.py", f"{folder}/click/tool/a.py"):
        assert not scope.includes(path)
    assert not scope.includes(f"{WHEELS}/click-8.1-py3-none-any.whl/click/core.py")
    assert not scope.includes("/home/ada/.pex/unzipped_pexes/9c/.bootstrap/pex/pex.py")

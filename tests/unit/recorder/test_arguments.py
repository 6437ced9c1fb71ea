import pytest

from tachograph.recorder.command.arguments import divide
from tachograph.recorder.command.target import Kind, Target
from tachograph.recorder.problems import Refused

VALUES = frozenset({"-o", "--output", "--interval", "--sampler"})


@pytest.mark.parametrize(
    ("line", "own", "target"),
    [
        ("a.py", [], Target(Kind.SCRIPT, "a.py")),
        ("a.py -o x --help -- b", [], Target(Kind.SCRIPT, "a.py", ("-o", "x", "--help", "--", "b"))),
        ("-q -o out a.py -q", ["-q", "-o", "out"], Target(Kind.SCRIPT, "a.py", ("-q",))),
        ("-oout a.py", ["-oout"], Target(Kind.SCRIPT, "a.py")),
        ("-qfo out a.py", ["-qfo", "out"], Target(Kind.SCRIPT, "a.py")),
        ("--output=out a.py", ["--output=out"], Target(Kind.SCRIPT, "a.py")),
        ("--interval 5 --force a.py", ["--interval", "5", "--force"], Target(Kind.SCRIPT, "a.py")),
        ("-m mod -o x", [], Target(Kind.MODULE, "mod", ("-o", "x"))),
        ("-mmod x", [], Target(Kind.MODULE, "mod", ("x",))),
        ("-qm mod x", ["-q"], Target(Kind.MODULE, "mod", ("x",))),
        ("-f -c pass -m", ["-f"], Target(Kind.CODE, "pass", ("-m",))),
        ("-cpass", [], Target(Kind.CODE, "pass")),
        ("-q -- -odd.py x", ["-q"], Target(Kind.SCRIPT, "-odd.py", ("x",))),
        ("- x", [], Target(Kind.SCRIPT, "-", ("x",))),
        ("-q --help", ["-q", "--help"], None),
        ("", [], None),
        ("--", [], None),
    ],
)
def test_divide(line: str, own: list[str], target: Target | None) -> None:
    assert divide(line.split(), VALUES) == (own, target)


@pytest.mark.parametrize("line", [["-m"], ["-q", "-c"], ["-qm"]])
def test_a_missing_value_is_refused(line: list[str]) -> None:
    with pytest.raises(Refused, match="needs"):
        divide(line, VALUES)


def test_an_empty_argument_is_a_script_that_does_not_exist() -> None:
    assert divide(["", "x"], VALUES) == ([], Target(Kind.SCRIPT, "", ("x",)))

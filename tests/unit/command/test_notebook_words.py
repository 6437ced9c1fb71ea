"""What stands behind %tachograph, and the Python that it becomes."""

import ast
from typing import Any

import pytest

from tachograph.notebook.words import WrongWordsError, read_words, verb_of


@pytest.mark.parametrize(
    ("line", "given", "output", "rest"),
    [
        ("", {}, None, ""),
        ("f(x) - 1", {}, None, "f(x) - 1"),
        ("--interval 5 f(-1)", {"interval": "5"}, None, "f(-1)"),
        ("--interval=5 --cpu-only f()", {"interval": "5", "memory": False}, None, "f()"),
        ("-o run.tacho -f x = 1", {"force": True}, "run.tacho", "x = 1"),
        ("--output 'a b.tacho' y", {}, "a b.tacho", "y"),
        ("--label a=1 --label b=2=3", {"labels": {"a": "1", "b": "2=3"}}, None, ""),
        ("-- -x", {}, None, "-x"),
        ("print('  --force')", {}, None, "print('  --force')"),
    ],
)
def test_options_come_first_and_the_statement_stays_as_it_is(
    line: str, given: dict[str, Any], output: str | None, rest: str
) -> None:
    words = read_words(line)
    assert (words.given, words.output, words.rest) == (given, output, rest)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--intervall 5", "there is no option --intervall (did you mean --interval?)"),
        ("-x", "there is no option -x;"),
        ("--interval", "option --interval needs a value"),
        ("--force=1", "option --force takes no value"),
        ("--label a", "option --label needs KEY=VALUE"),
        ("--sampler signal", "--sampler does not work in a notebook"),
    ],
)
def test_what_cannot_be_understood_is_one_line(line: str, message: str) -> None:
    with pytest.raises(WrongWordsError) as refused:
        read_words(line)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "verb", "rest"),
    [
        ("start", "start", ""),
        ("start --cpu-only", "start", "--cpu-only"),
        ("stop", "stop", ""),
        ("diff 3 4", "diff", "3 4"),
        ("diff In[3] run.tacho", "diff", "In[3] run.tacho"),
        ("diff(3, 4)", None, "diff(3, 4)"),
        ("start = 3", None, "start = 3"),
        ("stop or go()", None, "stop or go()"),
        ("started()", None, "started()"),
    ],
)
def test_a_verb_is_no_statement(line: str, verb: str | None, rest: str) -> None:
    assert verb_of(line) == (verb, rest)


@pytest.fixture
def transformed() -> Any:
    """What a shell with our transformations makes of a cell."""
    manager = pytest.importorskip("IPython.core.inputtransformer2").TransformerManager()
    from tachograph.notebook.extension import StatementTransform, transform_cell

    manager.cleanup_transforms.append(transform_cell)
    manager.token_transformers.append(StatementTransform)
    return manager.transform_cell


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%%tachograph\nf()\n", "get_ipython().tachograph.cell('')\nf()\n"),
        ("\n%%tachograph --interval 5\nf()\n", "get_ipython().tachograph.cell('--interval 5')\nf()\n"),
        ("%tachograph f()\n", "with get_ipython().tachograph.line(''): f()\n"),
        (
            "if True:\n    %tachograph --cpu-only x = f(1)\n    g()\n",
            "if True:\n    with get_ipython().tachograph.line('--cpu-only'): x = f(1)\n    g()\n",
        ),
        (
            "%tachograph f(1, \\\n    2)\ng()\n",
            "with get_ipython().tachograph.line(''): f(1,      2)\n\ng()\n",
        ),
        ("text = '''\n%tachograph f()\n'''\n", "text = '''\n%tachograph f()\n'''\n"),
        ("a = 7\na %tachograph\n", "a = 7\na %tachograph\n"),
        ("%tachograph diff 3 4\n", "get_ipython().run_line_magic('tachograph', 'diff 3 4')\n"),
        ("%tachograph --bogus f()\n", "get_ipython().run_line_magic('tachograph', '--bogus f()')\n"),
        ("%tachograph\n", "get_ipython().run_line_magic('tachograph', '')\n"),
        ("%%tachographs\nf()\n", "get_ipython().run_cell_magic('tachographs', '', 'f()\\n')\n"),
        ("%%tachograph -o it's.tacho\nf()\n", 'get_ipython().tachograph.cell("-o it\'s.tacho")\nf()\n'),
    ],
)
def test_a_cell_stays_what_it_is_but_for_the_line_of_the_magic(transformed: Any, cell: str, python: str) -> None:
    found = transformed(cell)
    assert found == python
    ast.parse(found)

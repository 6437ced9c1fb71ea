"""Lines and functions through the edits that people make."""

from __future__ import annotations

import textwrap

import pyarrow as pa
import pytest

from tachograph.analyzer.diff.links import FunctionKey, Link, SourceFile, pair_files
from tachograph.analyzer.diff.source_functions import NOWHERE, definitions, follow
from tachograph.analyzer.report_data.difference import Status

SOURCE = textwrap.dedent(
    """\
    import os


    def load(path):
        rows = []
        for line in open(path):
            rows.append(line.split())
        return rows


    def total(rows):
        result = 0
        for row in rows:
            result += len(row)
        return result


    class Report:
        def __init__(self, rows):
            self.rows = rows

        def show(self):
            for row in self.rows:
                print(row)
            return len(self.rows)


    print(total(load(os.devnull)))
    """
)


def file(path: str, text: str | None, digest: str | None = None) -> SourceFile:
    return SourceFile(path, digest, pa.chunked_array([pa.array([text], pa.string())]))


def link(base: str, new: str) -> Link:
    """Two versions of one file, with no functions but those of the texts."""
    return Link([file("/srv/a.py", base)], [file("/srv/a.py", new)], [], [])


def line_of(text: str, part: str) -> int:
    (found,) = [number for number, line in enumerate(text.split("\n"), 1) if part in line]
    return found


def followed(base: str, new: str, part: str) -> str | None:
    """The line of ``new`` that the line of ``base`` with ``part`` in it became."""
    place = link(base, new).forward.line(0, line_of(base, part))
    return None if place is None else new.split("\n")[place[1] - 1].strip()


def function(base: str, new: str, name: str) -> tuple[str, Status] | None:
    """What a function of ``base`` is called in ``new``, and what became of it."""
    linked = link(base, new)
    own = next(each for each in definitions(base) or [] if each.name == name)
    key: FunctionKey = (0, name, own.first_line)
    found = linked.forward.function(key)
    if found is None:
        return None
    assert linked.backward.function(found) == key
    return found[1], linked.function_status(key, found)


def test_nothing_changed() -> None:
    linked = link(SOURCE, SOURCE)
    assert linked.forward.line(0, 7) == (0, 7)
    assert linked.line_status((0, 7), (0, 7)) is Status.SAME


@pytest.mark.parametrize("part", ["rows.append", "result += len", "print(row)", "print(total"])
def test_lines_inserted_above(part: str) -> None:
    new = SOURCE.replace("import os\n", "import os\nimport sys\n\nLIMIT = 10\n")
    assert link(SOURCE, new).forward.line(0, line_of(SOURCE, part)) == (0, line_of(SOURCE, part) + 3)


def test_every_line_has_its_own_partner() -> None:
    new = SOURCE.replace("        return rows\n", "").replace("result = 0", "result = 0\n    seen = 0")
    linked = link(SOURCE, new)
    targets = [place for line in range(1, 40) if (place := linked.forward.line(0, line))]
    assert len(set(targets)) == len(targets)
    for line in range(1, 40):
        place = linked.forward.line(0, line)
        assert place is None or linked.backward.line(*place) == (0, line)


def test_an_edited_line_is_the_same_line() -> None:
    new = SOURCE.replace("rows.append(line.split())", "rows.append(line.rstrip().split(','))")
    assert followed(SOURCE, new, "rows.append") == "rows.append(line.rstrip().split(','))"
    place = (0, line_of(SOURCE, "rows.append"))
    assert link(SOURCE, new).line_status(place, place) is Status.EDITED


def test_a_replaced_line_is_not() -> None:
    new = SOURCE.replace("rows.append(line.split())", "yield Thing.of(42)")
    assert followed(SOURCE, new, "rows.append") is None


def test_a_deleted_line_is_gone() -> None:
    assert followed(SOURCE, SOURCE.replace("            print(row)\n", "            pass\n"), "print(row)") is None


def test_a_block_that_was_indented() -> None:
    new = SOURCE.replace(
        "    for row in rows:\n        result += len(row)\n",
        "    with lock:\n        for row in rows:\n            result += len(row)\n",
    )
    assert followed(SOURCE, new, "result += len") == "result += len(row)"
    assert followed(SOURCE, new, "for row in rows:") == "for row in rows:"


def test_functions_that_changed_places() -> None:
    one, two = SOURCE.index("def total"), SOURCE.index("class Report")
    new = (
        SOURCE[:one] + SOURCE[two : SOURCE.index("print(total")] + SOURCE[one:two] + "print(total(load(os.devnull)))\n"
    )
    for part in ("result += len", "print(row)", "self.rows = rows"):
        assert followed(SOURCE, new, part) == next(line.strip() for line in SOURCE.split("\n") if part in line)
    assert function(SOURCE, new, "total") == ("total", Status.SAME)
    assert function(SOURCE, new, "Report.show") == ("Report.show", Status.SAME)


def test_an_edited_function() -> None:
    assert function(SOURCE, SOURCE.replace("result = 0", "result = 1"), "total") == ("total", Status.EDITED)


def test_a_renamed_function_with_the_same_body() -> None:
    new = SOURCE.replace("def total(", "def count_words(").replace("print(total(", "print(count_words(")
    assert function(SOURCE, new, "total") == ("count_words", Status.RENAMED)
    assert followed(SOURCE, new, "result += len") == "result += len(row)"


def test_a_renamed_function_with_another_body_is_gone() -> None:
    new = SOURCE.replace("def total(", "def count_words(").replace("result += len(row)", "result += sum(map(len, row))")
    assert function(SOURCE, new, "total") is None


def test_a_renamed_class_keeps_its_methods() -> None:
    new = SOURCE.replace("class Report", "class Table")
    assert function(SOURCE, new, "Report") == ("Table", Status.RENAMED)
    assert function(SOURCE, new, "Report.show") == ("Table.show", Status.MOVED)


def test_two_copies_of_a_body_are_not_told_apart() -> None:
    body = SOURCE[SOURCE.index("def total") : SOURCE.index("class Report")]
    new = SOURCE.replace(body, body.replace("total", "first") + body.replace("total", "second"))
    assert function(SOURCE, new, "total") is None


def test_a_short_body_does_not_tell_which_function_it_is() -> None:
    base, new = "def a(self):\n    return self.x\n", "def b(self):\n    return self.x\n"
    assert function(base, new, "a") is None


def test_a_function_that_moved_to_another_file() -> None:
    body = SOURCE[SOURCE.index("def total") : SOURCE.index("class Report")]
    rest = SOURCE.replace(body, "from b import total\n")
    linked = Link([file("/srv/a.py", SOURCE)], [file("/srv/a.py", rest), file("/srv/b.py", body)], [], [])
    key = (0, "total", line_of(SOURCE, "def total"))
    found = linked.forward.function(key)
    assert found == (1, "total", 1)
    assert linked.function_status(key, found) is Status.MOVED
    place = linked.forward.line(0, line_of(SOURCE, "result += len"))
    assert place == (1, 4)
    assert linked.line_status((0, line_of(SOURCE, "result += len")), place) is Status.MOVED


def test_a_lambda_follows_its_line() -> None:
    base = "def outer(x):\n    y = 1\n    f = lambda a: a + 1\n    g = lambda a: a + 2\n    return f(x) + g(x) + y\n"
    new = "import os\n" + base.replace("outer", "renamed_outer")
    keys = [(0, "outer.<locals>.<lambda>", 3), (0, "outer.<locals>.<lambda>", 4)]
    linked = Link([file("/a.py", base)], [file("/a.py", new)], keys, [])
    assert [linked.forward.function(key) for key in keys] == [
        (0, "renamed_outer.<locals>.<lambda>", 4),
        (0, "renamed_outer.<locals>.<lambda>", 5),
    ]


def test_a_changed_file_without_its_text_is_not_followed() -> None:
    base, new = file("/a.py", None, "1" * 64), file("/a.py", None, "2" * 64)
    linked = Link([base], [new], [(0, "f", 3), (0, "g", 9), (0, "g", 11)], [(0, "f", 5), (0, "g", 9)])
    assert linked.forward.line(0, 3) is None
    assert linked.forward.blind == {0}
    assert linked.forward.function((0, "f", 3)) == (0, "f", 5)
    assert linked.forward.function((0, "g", 9)) is None


def test_a_file_of_unknown_text_is_assumed_unchanged_and_counted() -> None:
    linked = Link([file("<string>", None)], [file("<string>", None)], [], [])
    assert linked.forward.line(0, 3) == (0, 3)
    assert linked.assumed == 1


@pytest.mark.parametrize("path", ["/app.pyz/a.py", "<string>"])
def test_functions_of_a_file_of_unknown_text_tell_whether_it_is_the_same(path: str) -> None:
    """Neither side has its text: it is too large, or was not there to be read."""
    sides = [file(path, None)], [file(path, None)]
    steady = Link(*sides, [(0, "f", 3), (0, "<module>", 1)], [(0, "f", 3), (0, "g", 9), (0, "<module>", 1)])
    assert (steady.forward.line(0, 4), steady.assumed) == ((0, 4), 1)
    moved = Link(*sides, [(0, "f", 3), (0, "g", 9)], [(0, "f", 3), (0, "g", 11)])
    assert (moved.forward.line(0, 4), moved.forward.blind, moved.assumed) == (None, {0}, 0)
    assert moved.forward.function((0, "g", 9)) == (0, "g", 11)
    unknown = Link(*sides, [(0, "<module>", 1)], [(0, "<module>", 1)])
    assert unknown.forward.line(0, 4) == (None if path.startswith("/") else (0, 4))


def test_text_that_is_no_python_is_still_followed() -> None:
    base = "{% for x in y %}\n  {{ x }}\n{% endfor %}\n"
    assert followed(base, "hello\n" + base, "{{ x }}") == "{{ x }}"


@pytest.mark.parametrize("text", ["(" * 100_000, "-" * 100_000 + "1", "\0", "def f(:\n", "if 1:\n" * 300])
def test_hostile_texts_have_no_definitions(text: str) -> None:
    assert definitions(text) is None


def test_large_texts_are_followed_fast() -> None:
    base = [f"line {n % 700} of {n // 3}" for n in range(30_000)]
    new = ["first", *base[:10_000], "middle", *base[10_000:20_000], *base[20_100:]]
    found = follow(base, new)
    assert found[0] == 1
    assert found[15_000] == 15_002
    assert found[29_999] == len(new) - 1
    assert set(found[20_000:20_100]) == {NOWHERE}
    assert NOWHERE in follow(["x"] * 3000, ["y", *["x"] * 2000, "z", *["x"] * 500])


def test_files_of_another_checkout() -> None:
    base = [file(f"/srv/a/{name}", "x = 1") for name in ("app.py", "pkg/one.py", "pkg/two.py")]
    new = [file(f"/home/me/b/{name}", "x = 1", None) for name in ("pkg/two.py", "app.py", "pkg/one.py", "pkg/three.py")]
    assert pair_files(base, new) == {0: 1, 1: 2, 2: 0}


def test_a_renamed_file_is_known_by_its_text() -> None:
    assert pair_files([file("/a/old.py", SOURCE, "1")], [file("/a/new.py", SOURCE, "1")]) == {0: 0}
    edited = SOURCE.replace("result = 0", "result = 1")
    assert pair_files([file("/a/old.py", SOURCE, "1")], [file("/a/new.py", edited, "2")]) == {0: 0}
    other = "\n".join(f"another_name_{n} = {n}" for n in range(30))
    assert pair_files([file("/a/old.py", SOURCE, "1")], [file("/a/new.py", other, "2")]) == {}


def test_files_of_one_program_are_not_paired_for_what_they_resemble() -> None:
    # Each run of a side has the files that its samples met: bz2.py in one, and lzma.py, much of which is the same.
    one, other = [file("/lib/bz2.py", SOURCE, "1")], [file("/lib/lzma.py", SOURCE.replace("result = 0", ""), "2")]
    assert pair_files(one, other) == {0: 0}
    assert pair_files(one, other, edited=False) == {}


def test_files_that_might_be_either_of_two_are_not_paired() -> None:
    new = [file("/b/x/util.py", SOURCE, "1"), file("/b/y/util.py", SOURCE, "1")]
    assert pair_files([file("/a/z/util.py", SOURCE, "1")], new) == {}


def test_frozen_modules_are_paired_by_name_only() -> None:
    assert pair_files([file("<frozen a>", None)], [file("<frozen b>", None), file("<frozen a>", None)]) == {0: 1}


def cell(number: int, text: str, cell_id: str | None = None) -> SourceFile:
    return SourceFile(
        f"In [{number}]", None, pa.chunked_array([pa.array([text], pa.string())]), is_cell=True, cell_id=cell_id
    )


def test_runs_of_a_cell_are_paired_by_its_id_and_not_by_their_numbers() -> None:
    base = [cell(3, "a = 1\n", "one"), cell(4, "b = 2\n", "two")]
    new = [cell(4, "a = 1000\n", "one"), cell(5, "b = 2000\n", "two")]
    assert pair_files(base, new) == {0: 0, 1: 1}


def test_of_several_runs_of_a_cell_the_last_ones_are_paired() -> None:
    base = [cell(3, "a = 1\n", "one"), cell(4, "a = 2\n", "one")]
    assert pair_files(base, [cell(7, "a = 3\n", "one"), cell(8, "a = 4\n", "one")]) == {1: 1}


def test_cells_of_one_number_and_without_ids_are_paired_only_if_their_texts_are_alike() -> None:
    text = "first = load()\nsecond = clean(first)\nprint(second)\n"
    assert pair_files([cell(3, text)], [cell(3, text.replace("print", "show"))]) == {0: 0}
    assert pair_files([cell(3, text)], [cell(3, "import os\nos.getcwd()\n")]) == {}


def test_an_edited_cell_under_another_number_has_not_moved() -> None:
    linked = Link([cell(3, "x = 1\ny = f(x)\n", "one")], [cell(5, "y = f(x)\n", "one")], [], [])
    assert linked.forward.line(0, 2) == (0, 1)
    assert linked.line_status((0, 2), (0, 1)) is Status.SAME

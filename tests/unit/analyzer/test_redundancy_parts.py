"""Work that is done as a whole where a part of it is used, and arithmetic with Python's objects."""

from __future__ import annotations

import pytest

from tachograph.analyzer.conclusions.redundancy.candidates import ALGORITHM, MISUSE, SAME_CALL, SLICE
from tachograph.analyzer.conclusions.redundancy.kernels import is_of_objects
from unit.analyzer.judged_line import judged

HEAD = """\
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_similarity
"""


@pytest.mark.parametrize(
    ("category", "source"),
    [
        (SLICE, "for i in range(n):\n    use(buffer.raw[i * 30 : i * 30 + 30])  #"),
        (SLICE, "for i in range(n):\n    use(array.tobytes()[i])  #"),
        (SLICE, "for i in range(n):\n    use(sorted(names)[i])  #"),
        (None, "for i in range(n):\n    use(rows[i].raw[2:4])  #"),  # of another one each time
        (None, "for line in lines:\n    use(line.split()[1])  #"),
        (None, "for i in range(n):\n    use(buffer.other[i])  #"),
    ],
)
def test_parts_of_copies(category: str | None, source: str) -> None:
    verdict = judged(source, ["?", "PyObject_Vectorcall"])
    assert (verdict.category, verdict.by_source) == (category, category is not None)


@pytest.mark.parametrize(
    ("category", "call", "use"),
    [
        (SLICE, "cosine_similarity(x)", "row = all_of[user].copy()"),
        (SLICE, "cosine_similarity(x, x)", "row = all_of[user]"),
        (SLICE, "cdist(x, x)", "row = all_of[user, 5:]"),
        (SLICE, "dijkstra(graph)", "return all_of[user]"),
        (None, "dijkstra(graph, indices=user)", "return all_of[user]"),
        (None, "cosine_similarity(x, y)", "row = all_of[user]"),
        (None, "cosine_similarity(x)", "row = all_of[user] + all_of[other]"),
        (None, "cosine_similarity(x)", "row = all_of[user] / all_of.sum()"),
        (None, "cosine_similarity(x)", "row = all_of[5:]"),
        (None, "cosine_similarity(x)", "row = [all_of[each] for each in users]"),
        (None, "cosine_similarity(x)", "chosen = np.argsort(x[:, 0])\n    row = all_of[chosen]"),
    ],
)
def test_one_row_of_all(category: str | None, call: str, use: str) -> None:
    source = f"{HEAD}def near(x, y, graph, user, other, users):\n    all_of = {call}  #\n    {use}"
    verdict = judged(source, ["dgemm_kernel", "DOUBLE_matmul_matrixmatrix"])
    assert (verdict.category == SLICE, verdict.spends is not None) == (category == SLICE, category == SLICE)


@pytest.mark.parametrize(
    ("category", "line"),
    [
        (SLICE, "t = np.trace(a @ b)"),
        (SLICE, "t = (a @ b).diagonal()"),
        (SLICE, "t = (a @ b)[i]"),
        (None, "t = (a @ b)[2:]"),
        (None, "t = np.trace(a) * b"),
        (ALGORITHM, "t = sorted(a)[0]"),
        (ALGORITHM, "t = np.argsort(a)[-1]"),
        (None, "t = np.argsort(a)[-9:]"),
        (SLICE, "_, s, _ = np.linalg.svd(a)"),
        (SLICE, "s = np.linalg.eigh(a)[0]"),
        (None, "_, s, _ = np.linalg.svd(a, compute_uv=False)"),
        (None, "s, v = np.linalg.eigh(a)"),
        (None, "s = np.linalg.eigh(a)[1]"),
    ],
)
def test_parts_of_other_wholes(category: str | None, line: str) -> None:
    """Time shows them, and no pairs need to."""
    verdict = judged(f"def f(a, b, i):\n    {line}  #\n    return v", ["DOUBLE_inner", "umath"])
    assert (verdict.category, verdict.spends is not None, verdict.within) == (
        category,
        category is not None,
        category is not None,
    )


@pytest.mark.parametrize(
    ("category", "text"),
    [
        (SAME_CALL, "index.fit(self.texts + [text])"),
        (SAME_CALL, "index.fit(np.vstack([row, self.rows]))"),
        (None, "index.fit(self.texts + [text, text])"),
        (None, "index.fit(other.texts + [text])"),
    ],
)
def test_all_that_stays_with_one_more(category: str | None, text: str) -> None:
    source = f"""\
class Bot:
    def reply(self, text, row, other):
        return {text}  #
def serve(bot, texts):
    for text in texts:
        bot.reply(text, text.row, text)
"""
    verdict = judged(source, ["?", "PyObject_Vectorcall"], callers=(6,))
    assert verdict.category == category


@pytest.mark.parametrize(
    ("path", "is_object"),
    [
        (["PyUFunc_OO_O", "ufunc_generic_fastcall"], True),
        (["float_add", "PyNumber_Add", "PyUFunc_OO_O", "generic_wrapped_legacy_loop"], True),
        (["OBJECT_multiply", "array_multiply"], True),
        (["OBJECT_equal", "array_richcompare"], False),  # text is compared so
        (["OBJECT_getitem", "array_subscript"], False),
        (["object_vacall", "PyObject_CallMethodObjArgs"], False),
        (["DOUBLE_add", "ufunc_generic_fastcall"], False),
    ],
)
def test_the_native_paths_of_objects(path: list[str], *, is_object: bool) -> None:
    assert is_of_objects(path) is is_object
    verdict = judged("def f(a, b):\n    return a - b  #", path)
    assert ((verdict.category, verdict.spends) == (MISUSE, is_of_objects)) is is_object


@pytest.mark.parametrize(
    ("category", "text"),
    [
        (ALGORITHM, "head, data = data[:9], data[9:]  #\n    return head, data"),
        (ALGORITHM, "data = data[9:]  #\n    return data"),
        (None, "head, data = data[:9], data[9:]  #\n    return head"),
        (None, "head, data = data[:9], other[9:]  #\n    return head, data"),
    ],
)
def test_the_rest_that_a_function_gives_back(category: str | None, text: str) -> None:
    verdict = judged(f"def read(data, other):\n    {text}", ["memcpy", "bytes_subscript"], kind="result", grows=True)
    assert verdict.category == category


@pytest.mark.parametrize(
    ("category", "text"),
    [
        (ALGORITHM, "return {'late': late, 'ends': {**state['ends'], job: end}}"),
        (ALGORITHM, "self.ends = {**self.ends, job: end}"),
        (ALGORITHM, "for job in jobs:\n        rows = [*rows, job]"),
        (None, "return {**state, 'late': late}"),  # a record of a few
        (None, "return {'late': late, 'ends': {**state['other'], job: end}}"),
        (None, "rows = [*rows, job]"),  # once in each call
        (None, "for job in jobs:\n        rows = [*other, job]"),
    ],
)
def test_what_is_copied_to_add_to_it(category: str | None, text: str) -> None:
    verdict = judged(f"def assign(self, state, job, jobs, rows, other):\n    {text}  #", ["dict_merge"])
    assert (verdict.category == ALGORITHM, verdict.spends is not None) == (category is not None, category is not None)


def test_what_releases_objects_is_no_arithmetic_with_them() -> None:
    assert judged("def f(frame):\n    return scores(frame)  #", ["clear_object_strided_loop"]).spends is None

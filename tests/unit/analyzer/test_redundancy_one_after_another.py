"""Calls that get the same data each time and one number after another."""

from __future__ import annotations

import pytest

from unit.analyzer.judged_line import judged

SELECT = ["introselect_<npy::double_tag>", "PyArray_Partition", "array_partition"]
POWER = ["npy_pow", "DOUBLE_power", "ufunc_generic_fastcall"]
RESAMPLE = ["_ImagingResampleHorizontal_8bpc", "ImagingResample", "_resize"]
PRODUCT = ["dgemm_small_kernel", "DOUBLE_matmul_matrixmatrix", "ufunc_generic_fastcall"]
SELECTOR = ["PyUFunc_DefaultLegacyInnerLoopSelector", "ufunc_generic_fastcall"]
UNPACK = ["bytes_subscript", "PyObject_GetItem"]
EQUAL = ["DOUBLE_equal_AVX2", "ufunc_generic_fastcall", "array_richcompare"]
ALGORITHM, MISUSE = "inefficient-algorithm", "api-misuse"


def category(body: str, path: list[str], head: str = "for k in range(9):") -> str | None:
    return judged(f"import pandas as pd, struct\ndef f(x, weights, frame):\n {head}\n  {body}", path).category


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("q = np.quantile(x, k / 9)  #", ALGORITHM),
        ("q = np.percentile(x, q=10 * k)  #", ALGORITHM),
        ("q = frame['income'].quantile(k / 9)  #", ALGORITHM),
        ("q = np.quantile(x[k], 0.5)  #", None),  # of other data
        ("x = x + k\n  q = np.quantile(x, k / 9)  #", None),
    ],
)
def test_quantiles_of_the_same_data_one_by_one(body: str, expected: str | None) -> None:
    assert category(body, SELECT) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = x.resize((weights >> k, 9))  #", ALGORITHM),
        ("y = ndimage.zoom(x, 1 / (k + 1))  #", ALGORITHM),
        ("x = x.resize((weights >> k, 9))  #", None),  # of the one before
        ("y = x[k].resize((64, 64))  #", None),  # of other pictures
        ("y = np.resize(x, k)  #", None),  # a fill
    ],
)
def test_smaller_copies_of_the_same_one_by_one(body: str, expected: str | None) -> None:
    assert category(f"from scipy import ndimage\n  {body}", RESAMPLE) == expected


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        ("y = x**k  #", POWER, ALGORITHM),
        ("total += 3.0 * x ** (k + 1)  #", POWER, ALGORITHM),
        ("y = np.linalg.matrix_power(x, k)  #", PRODUCT, ALGORITHM),
        ("y = x[k]**k  #", POWER, None),
        ("y = x**weights[k]  #", POWER, None),  # any number
    ],
)
def test_powers_of_the_same_with_the_next_exponent(body: str, path: list[str], expected: str | None) -> None:
    assert category(body, path) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("(v,) = struct.unpack('<h', x[k : k + 2])  #", MISUSE),
        ("v = int.from_bytes(x[k : k + 2], 'big')  #", MISUSE),
        ("v = x[k : k + 2]  #", "slice-underutilization"),
        ("v = struct.unpack('<2h', x[:4])  #", None),
    ],
)
def test_numbers_of_bytes_one_by_one(body: str, expected: str | None) -> None:
    assert category(body, UNPACK) in ((expected,) if expected else (None, "loop-invariant"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = np.linalg.solve(x, weights[k])  #", ALGORITHM),
        ("y, *_ = np.linalg.lstsq(x, frame + k, rcond=None)  #", ALGORITHM),
        ("y = np.linalg.solve(x[k], weights)  #", None),
        ("y = np.linalg.solve(x + k, weights[k])  #", None),
        ("y = x.solve(x, weights[k])  #", None),  # what that does is not known
    ],
)
def test_equations_of_which_one_side_alone_changes(body: str, expected: str | None) -> None:
    assert category(body, PRODUCT) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = x[frame <= k].sum()  #", ALGORITHM),
        ("y = np.sum(x[weights['day'] < k])  #", ALGORITHM),
        ("y = x[frame <= k]  #", None),  # of which there may be need
        ("y = x[frame <= weights[k]].sum()  #", None),
        ("y = x[frame[k] <= k].sum()  #", None),
    ],
)
def test_sums_up_to_the_next_bound(body: str, expected: str | None) -> None:
    assert (category(body, EQUAL) == ALGORITHM) == (expected == ALGORITHM)


@pytest.mark.parametrize(
    ("body", "expected"),
    [("y = frame.iloc[k - 5 : k].mean()  #", ALGORITHM), ("y = frame.iloc[k].mean()  #", "slice-underutilization")],
)
def test_rows_in_a_row_of_a_table_are_a_window_and_no_element(body: str, expected: str) -> None:
    assert category(body, [*SELECTOR, "array_subscript"]) == expected


@pytest.mark.parametrize(
    ("body", "is_one"),
    [
        ("patch = x[k : k + 3]\n  y = np.sum(patch * weights)  #", True),
        ("patch = x[k : k + 3, 2:5]\n  y = (patch * weights).sum()  #", True),
        ("y = np.dot(x[k : k + 3], weights)  #", True),
        ("y = np.sum(x[k] * weights)  #", False),  # each row once
        ("patch = x[k : k + 3]\n  y = np.sum(patch * frame[k])  #", False),
    ],
)
def test_a_window_that_moves_and_weights_that_stay_are_a_correlation(body: str, *, is_one: bool) -> None:
    verdict = judged(f"def f(x, weights, frame):\n for k in range(9):\n  {body}", SELECTOR)
    assert ("correlation" in verdict.reason) == is_one, verdict
    assert verdict.category == MISUSE or not is_one


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("m = frame.loc[frame['key'] == key, 'amount'].mean()  #", ALGORITHM),
        ("part = frame[frame.key == key]  #", ALGORITHM),
        ("part = frame[frame['key'] == 3]  #", None),  # of one group, always the same
        ("part = x[frame['key'] == key]  #", None),
        ("part = frame[frame['key'] > key]  #", None),
    ],
)
def test_groups_of_a_table_one_by_one(body: str, expected: str | None) -> None:
    found = category(body, EQUAL, "for key in weights:")
    assert (found == ALGORITHM) == (expected == ALGORITHM), found

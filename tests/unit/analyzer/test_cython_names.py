"""Names of functions of Cython, as they are in scikit-learn and pandas."""

from __future__ import annotations

import pytest

from tachograph.analyzer.recording.native_names import cython_name, plain_name, short_name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("__pyx_f_7sklearn_4tree_9_splitter_12BestSplitter_init", "sklearn.tree._splitter.BestSplitter.init"),
        (
            "__pyx_pw_7sklearn_4tree_5_tree_21DepthFirstTreeBuilder_3build(_object*, _object* const*, long, _object*)",
            "sklearn.tree._tree.DepthFirstTreeBuilder.build",
        ),
        ("__pyx_f_7sklearn_4tree_5_tree__build_pruned_tree(long)", "sklearn.tree._tree._build_pruned_tree"),
        ("__pyx_fuse_4__pyx_f_7sklearn_4tree_6_utils_safe_realloc", "sklearn.tree._utils.safe_realloc"),
        (
            "__pyx_pw_7sklearn_13decomposition_16_online_lda_fast_5_dirichlet_expectation_2d",
            "sklearn.decomposition._online_lda_fast._dirichlet_expectation_2d",
        ),
        ("__pyx_pw_7sklearn_4tree_9_splitter_8Splitter_5__setstate__", "sklearn.tree._splitter.Splitter.__setstate__"),
        ("__pyx_f_5numpy_import_array()", "numpy.import_array"),
        ("__pyx_pw_6pandas_5_libs_7writers_1write_csv_rows.constprop.0", "pandas._libs.writers.write_csv_rows"),
        ("__pyx_pymod_create", None),
        ("__pyx_f_", None),
        ("__pyx_f_999999999999999999999999x", None),
        ("__pyx_f_3ab_", None),
        ("array_sort", None),
    ],
)
def test_names(symbol: str, name: str | None) -> None:
    assert plain_name(symbol) == (name or symbol)
    assert (cython_name(symbol) is None) == (name is None)


def test_short_names() -> None:
    assert short_name("sklearn.tree._splitter.BestSplitter.init") == "BestSplitter.init"
    assert short_name("numpy.import_array") == "numpy.import_array"

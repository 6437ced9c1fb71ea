"""Native functions by name: those that read operands, those that dispatch, and the interpreter's own loops."""

from __future__ import annotations

import pytest

from tachograph.analyzer.conclusions.redundancy.kernels import dispatch_part, is_dispatch, is_iterated

READING = [
    # NumPy
    *("DOUBLE_add_X86_V3", "DOUBLE_pairwise_sum", "FLOAT_multiply_AVX2", "LONG_power", "DOUBLE_sqrt_AVX512F"),
    *("DOUBLE_matmul_matrixmatrix", "CDOUBLE_absolute_X86_V3", "DOUBLE_square", "BOOL_logical_and", "DOUBLE_fill"),
    *("simd_binary_scalar2_equal_u64", "double_sum_of_products_contig_two", "_aligned_strided_to_contig_size8"),
    *("_contig_to_contig", "_aligned_contig_cast_long_to_double", "npy_timsort", "mapiter_trivial_get", "introselect_"),
    *("void np::qsort_simd::QSort_X86_V3<double>(double*, long)", "PyArray_Nonzero", "arr_interp", "arr_bincount"),
    *("random_standard_normal", "random_standard_uniform_fill", "pocketfft::detail::rfftp<double>::exec"),
    # BLAS, LAPACK
    *("dgemm_kernel_HASWELL", "dgemv_kernel_4x2", "ddot_k_HASWELL", "dgetrf_single", "dpotrf_U_single", "dcopy_k"),
    # SciPy, pandas, scikit-learn, PIL
    *("csr_matvec<int, double>", "csc_matvecs", "query_knn", "cKDTree::query", "_sosfilt", "evaluate_spline"),
    *("kh_get_int64", "__pyx_f_6pandas_5_libs_5algos_take_1d", "kahan_sum", "get_pixel_32", "ImagingResample"),
    *("euclidean_distances_fast", "csr_row_norms", "vec_norm", "crc_run", "DOUBLE_nonzero"),
]
DISPATCHING = [
    *("PyUFunc_DefaultLegacyInnerLoopSelector", "ufunc_generic_fastcall", "PyArrayIdentityHash_GetItem"),
    *("get_wrapped_legacy_ufunc_loop", "generic_wrapped_legacy_loop", "_npy_parse_arguments", "dispatcher_vectorcall"),
    *(
        "array_subscript",
        "array_item",
        "prepare_index",
        "PyArray_NewFromDescr_int",
        "PyArray_Scalar",
        "convert_to_double",
    ),
    *("npyiter_fill_axisdata", "NpyIter_Deallocate", "PyArray_DiscoverDTypeAndShape", "resolve_descriptors"),
    *("PyArray_GetCastingImpl", "get_implementing_args_and_methods", "_ctypes_callproc", "ConvParam", "array_dealloc"),
    *("__Pyx_PyObject_Call", "__pyx_pw_5numpy_6random_10_generator_9Generator_15random", "gentype_alloc"),
    *("pybind11::cpp_function::dispatcher", "simple_legacy_resolve_descriptors", "array_assign_subscript"),
]


@pytest.mark.parametrize("name", READING)
def test_kernels_read_operands(name: str) -> None:
    assert not is_dispatch(name)


@pytest.mark.parametrize("name", DISPATCHING)
def test_dispatch_comes_before_the_work(name: str) -> None:
    assert is_dispatch(name)


def test_the_part_in_dispatch() -> None:
    assert dispatch_part(["array_subscript", "DOUBLE_add", "ufunc_generic_fastcall", "array_item"]) == 0.75
    assert dispatch_part([]) == 0.0


@pytest.mark.parametrize(
    ("path", "iterated"),
    [
        (["PyArray_Scalar", "iter_iternext", "PyIter_Next", "builtin_sum", "cfunction_vectorcall"], True),
        (["array_item", "PySequence_GetItem", "PySequence_Tuple"], True),
        (["array_item", "iter_iternext", "list_extend", "list_vectorcall"], True),
        (["array_item", "array_richcompare", "min_max", "builtin_max"], True),
        (["PyArray_Scalar", "iter_iternext", "_collections__count_elements", "cfunction_vectorcall"], True),
        (["PyArray_Scalar", "math_fsum"], True),
        (["DOUBLE_add", "ufunc_generic_fastcall", "PyObject_Vectorcall"], False),
        (["summed_area", "PyObject_Vectorcall"], False),
    ],
)
def test_the_interpreters_own_loops(path: list[str], *, iterated: bool) -> None:
    assert is_iterated(path) is iterated

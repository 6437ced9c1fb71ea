"""Classifies native functions by name: those that read operands, those that dispatch, and the interpreter's own loops.

A library's function does two kinds of work. *Kernels* read the operands: what they load again may be a constant table,
or a matrix that is multiplied with one vector after another. *Dispatch* is all that comes before them in each call,
whatever its operands: argument parsing, choice of the loop, conversions, checks of an index. The rules go by the words
that libraries make their names of, not by lists of functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_TYPED = (
    r"BOOL|U?BYTE|U?SHORT|U?INT|U?LONG(LONG)?|HALF|FLOAT|DOUBLE|LONGDOUBLE|CFLOAT|CDOUBLE|CLONGDOUBLE|DATETIME|TIMEDELTA"
    r"|OBJECT|STRING|UNICODE|VOID"
)
_KERNEL = re.compile(
    rf"^({_TYPED})_(?!copyswap|getitem|setitem|nonzero)"  # NumPy's loops by type: DOUBLE_add_AVX2
    r"|pairwise_sum|sum_of_products|(strided|contig|unaligned|aligned)_(to|cast|fill|transfer)|_cast_\w+_to_"
    r"|(qsort|introsort|timsort|radixsort|mergesort|heapsort|partition|argsort|argpartition|sort_n_vec)"
    r"|(gemm|gemv|symm|syrk|trsm|trmm|axpy|_dot_k|dot_kernel|nrm2|scal_k|getrf|potrf|swap_k|copy_k)"
    r"|(cs[rc]|bsr|coo|dia)_\w+|random_\w+(fill|inplace)?\b.*(zig|standard)|pocketfft|pcg64|mt19937|npy_(exp|log|sin|cos|pow)"
)
_DISPATCH = re.compile(
    r"ufunc(?!_at)|InnerLoopSelector|wrapped_legacy_loop|IdentityHash|IdentityCache|parse_arg|ParseTuple|ParseOptional"
    r"|vectorcall|fastcall|dispatcher|get_implementing|array_function|array_ufunc|override"
    r"|subscript|array_item|_getitem|_setitem|getset|prepare_index|unpack_ind|get_view_from_index|check_and_adjust"
    r"|NewFromDescr|PyArray_(Scalar|Return|FromAny|CheckFrom|DescrFrom|New|Empty|IntpFrom|PyInt|Convert|Discover|Get)"
    r"|gentype_|scalar_|scalarmath|convert_to_(bool|byte|u?int|u?long|float|double|half)|_to_c(float|double)"
    r"|descr|dtype|DType|resolve|resolution|promot|can_cast|GetCasting|get_casting|CastingImpl|bufsize|errmask|extobj"
    r"|NpyIter|npyiter|iter_(new|next|init)|iternext|nditer|broadcast|ReduceWrapper|reduction_result|wrap_(array|return)"
    r"|npy_(apply|find|get|import|cache|parse|ensure)_|find_array|fielddesc|callproc|ConvParam|stgdict|GetResult|ffi_"
    r"|cdata_|CData|_getfunc|_setfunc|Pointer_|Array_(subscript|ass)|__Pyx_|__pyx_(pw|tp|memview|fatptr|m_)|_memview"
    r"|cpp_function|type_caster|pybind11|nanobind|SWIG_|PyO3|pyo3|alloc_cache|cache_(alloc|free)|PyObject_|PyArg_"
    r"|[a-z]_(new|dealloc|init|traverse|clear)$|^array_(?!(copy|assign)\w*data)\w+$",
)
_OF_NUMBERS = re.compile(
    r"^PyArray_(Scalar|FromScalar|DescrFromScalar)\b|^(gentype|scalar)_|^convert_to_|^is_anyscalar"
    r"|^(bool|u?byte|u?short|u?int|u?long(long)?|half|float|double|longdouble|cfloat|cdouble)_(add|subtract|multiply"
    r"|true_divide|floor_divide|remainder|power|negative|absolute|richcompare)\b"
)
_OF_ARRAYS = re.compile(
    r"^array_(inplace_)?(add|subtract|multiply|true_divide|floor_divide|remainder|power|negative|absolute|richcompare"
    r"|matrix_multiply)\b"
)
"""NumPy's operators of arrays, and above what it runs for single numbers: its scalars, and results of one element."""
OF_OBJECTS = re.compile(r"^PyUFunc_O+_O|^OBJECT_(?!getitem|setitem|copyswap|nonzero|(not_)?equal|less|greater)")
"""NumPy's loops that call Python's operators for each element."""
_BESIDE_OBJECTS = re.compile(r"^clear_object_strided_loop|copy_references")
"""What it does with such objects before and after."""
ITERATING = re.compile(
    r"^builtin_(sum|max|min|any|all|sorted|map|filter|enumerate|zip|iter)"
    r"|^(min_max|list_extend|list___init__|set_update_internal|map_next|filter_next|zip_next|enum_next|reversed_next)"
    r"|^(PySequence_(List|Tuple|Fast|Contains)|_PySequence_IterSearch|list_vectorcall|tuple_new_impl|deque_extend)"
    r"|^(_collections__count_elements|math_(fsum|prod|sumprod)|array_iter_extend|array_array_extend)"
)
"""The loops of the interpreter and its standard library over whatever they get: ``sum``, ``list``, ``Counter``."""
READING = re.compile(
    r"^(builtin_(sum|max|min|any|all)|min_max|(list|tuple)_?(contains|index|count)(_impl)?|_PySequence_IterSearch"
    r"|_collections__count_elements|math_(fsum|prod|sumprod))\b"
)
"""Those of them that read elements and keep none, and the searches of lists and tuples."""
CONCATENATING = re.compile(
    r"^(bytes_concat|PyBytes_Concat|PyUnicode_Concat|tuple_?concat|list_concat(_lock_held)?|array_array_concat)$"
    r"|^(list_?slice(_lock_held)?|list_subscript|tuple_?slice|tuplesubscript|bytes_subscript|unicode_subscript)$"
)
"""Functions of the interpreter that make a new object of two, or of a part of one: those that may add to one in its
place are left out."""
BUILDING = re.compile(
    r"^(builtin_sorted|list_sort|list___init__|list_extend|PySequence_(List|Tuple)|tuple_new|set_update|make_new_set"
    r"|dict_(merge|update|copy)|PyDict_Copy|PyUnicode_(Join|Replace|Split)"
    r"|(unicode|bytes|bytearray|stringlib)_(join|replace|encode|decode|split|translate|upper|lower|repeat))"
)
"""Functions of the interpreter that make a new object of all the elements of others."""
COPYING = re.compile(r"^_*(mem(cpy|move|set|cmp)|mempcpy)")
"""Functions of the C library that access memory for their caller."""


def is_dispatch(name: str) -> bool:
    """True for the name of a function that comes before the work, whatever the operands."""
    return _KERNEL.search(name) is None and _DISPATCH.search(name) is not None


def is_kernel(name: str) -> bool:
    """True for the name of a function that reads operands."""
    return _KERNEL.search(name) is not None


def is_iterated(path: Sequence[str]) -> bool:
    """True if the interpreter's own code called a library's functions one element at a time.

    ``path`` has the functions from the innermost one out to the one that Python code called.
    """
    return any(map(ITERATING.search, path))


def is_of_number(path: Sequence[str]) -> bool:
    """True if NumPy's objects of single numbers were made, or computed with."""
    return any(map(_OF_NUMBERS.search, path))


def is_of_objects(path: Sequence[str]) -> bool:
    """True if NumPy computed with Python's objects, one by one, or copied or released them."""
    return any(OF_OBJECTS.search(name) or _BESIDE_OBJECTS.search(name) for name in path)


def is_of_small_arrays(paths: Sequence[Sequence[str]]) -> bool:
    """True if NumPy's operators beside a call got arrays more often than single numbers."""
    numbers = sum(map(is_of_number, paths))
    return sum(any(map(_OF_ARRAYS.search, path)) for path in paths) > numbers


def dispatch_part(innermost: Iterable[str]) -> float:
    """The part of accesses that are in dispatch, by their innermost functions."""
    found = [is_dispatch(each) for each in innermost]
    return sum(found) / len(found) if found else 0.0

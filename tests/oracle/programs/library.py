"""The C library with allocations of its own (native/allocate.c), for ctypes."""

import ctypes


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    for name in ("oracle_allocated", "oracle_freed"):
        getattr(library, name).restype = ctypes.c_int64
    for name in ("oracle_malloc", "oracle_realloc", "oracle_grow", "oracle_worker_start"):
        getattr(library, name).restype = ctypes.c_void_p
    library.oracle_malloc.argtypes = library.oracle_grow.argtypes = [ctypes.c_size_t]
    library.oracle_free.argtypes = [ctypes.c_void_p]
    library.oracle_realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.oracle_forget.argtypes = library.oracle_forms.argtypes = [ctypes.c_int, ctypes.c_size_t]
    library.oracle_resize.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_size_t]
    library.oracle_worker_start.argtypes = [ctypes.c_int, ctypes.c_size_t]
    library.oracle_worker_tid.argtypes = [ctypes.c_void_p]
    library.oracle_worker_end.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return library

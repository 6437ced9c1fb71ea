// The iterator of a loop that the program has marked.
#pragma once

#include "tachograph/api.h"

#include <Python.h>

namespace tachograph::calls {

// Once per process, before `mark_loop`; false with an exception.
bool make_type_of_marked_loops();
// Iterates over `iterable`, and has calls watched from its first item until there is none left, or
// the iterator is given up; nullptr with an exception.
PyObject* mark_loop(const tg_api* api, PyObject* iterable);

}  // namespace tachograph::calls

// CPython's internal headers, which are C only, and what they call by other names.
#pragma once

#define Py_BUILD_CORE 1
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x03100000
#error "not a CPython that tachograph records (recorder/command/support.py)"
#endif
#ifdef Py_GIL_DISABLED
#error "tachograph does not record free-threaded builds"
#endif

// Some internal headers compare signs and leave parameters unused.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <internal/pycore_context.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_moduleobject.h>
#include <internal/pycore_object.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_pystate.h>
#endif
#if PY_VERSION_HEX < 0x030D0000
#include <opcode.h>
#endif
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_obmalloc.h>
#endif
#if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
#include <internal/pycore_ceval.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe_structs.h>
#endif
#pragma GCC diagnostic pop

#include "compat.h"
#include "tachograph/api.h"

#if PY_VERSION_HEX >= 0x030D0000
#define TG_ATTACHED PyThreadState_GetUnchecked
#define TG_FRAME_CODE f_executable
#define TG_FRAME_INSTRUCTION instr_ptr
#else
#define TG_ATTACHED _PyThreadState_UncheckedGet
#define TG_FRAME_CODE f_code
#define TG_FRAME_INSTRUCTION prev_instr
#endif

// The span of the program that a thread, or a suspended task, is in: a value of a context variable
// of ours, which each task and each greenlet has for itself, and inherits.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

#include <Python.h>

#include <cstddef>
#include <cstdint>

namespace tachograph {

// From now on the span is what this variable holds: an object of this type, with its number, an
// int, at this offset. The GIL is held. Later calls change nothing.
void follow_spans(PyObject* variable, PyTypeObject* type, size_t number_offset);

class CurrentSpan {
  public:
    CurrentSpan(const tg_api* api, const tg_offsets* offsets) : api_(api), at_(offsets) {}

    // The number of the span; 0 if it is in none, or that cannot be read.
    uint32_t of_thread(const uint8_t* tstate) const;
    uint32_t of_context(const uint8_t* context) const;

  private:
    const uint8_t* find(const uint8_t* node, const uint8_t* variable, uint32_t hash) const;
    enum class Kind { other, few, many, collision };
    Kind kind_of(const uint8_t* node) const;

    const tg_api* api_;
    const tg_offsets* at_;
};

}  // namespace tachograph

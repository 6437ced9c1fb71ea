// Guarded reads of the interpreter's objects, for all that looks at them from outside.
#pragma once

#include "arch/processor.h"
#include "compat.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tachograph {

inline bool plausible(const void* pointer) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    return address >= 4096 && address % 8 == 0 && address < (uintptr_t{1} << TG_ADDRESS_BITS);
}

// A field of a copy of an object.
template <typename T>
T field(const uint8_t* copy, size_t offset) {
    T value;
    memcpy(&value, copy + offset, sizeof value);
    return value;
}

// A field of an object; false if it could not be read.
template <typename T>
bool load(const tg_api* api, const uint8_t* object, size_t offset, T* to) {
    return api->read(to, object + offset, sizeof(T)) != 0;
}

// Where the characters of a string are.
struct Text {
    const uint8_t* data = nullptr;
    tg_unicode_shape shape{};
    size_t bytes() const { return shape.length * shape.width; }
};

// At most the first `most` characters of a string; false if it is none that can be read.
bool find_text(const tg_api* api, const uint8_t* string, size_t most, Text* text);

// Whether a string is this one, all of it ASCII. `length` is at most 32.
bool is_text(const tg_api* api, const uint8_t* string, const char* wanted, size_t length);

}  // namespace tachograph

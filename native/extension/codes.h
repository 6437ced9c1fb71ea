// Code objects as facts: an id for each, and one CODE record with what the analyzer needs of it.
#pragma once

#include "compat.h"
#include "reading.h"
#include "tachograph/api.h"

#include <cstdint>

namespace tachograph {

// Tells apart two code objects that lived at one address, one after the other: CPython 3.12+ calls
// us when one dies, in the interpreter that calls this. In 3.11, and as long as there are
// subinterpreters, the content of its names and its line table has to do.
void watch_code_deaths();
void unwatch_code_deaths();

class Codes {
  public:
    Codes(const tg_api* api, const tg_offsets* offsets)
        : api_(api), at_(offsets), deaths_told_(deaths_are_told()) {}

    // False if the object could not be read. The id is TG_NONE if the table is full. Objects that
    // say the same have one id, so that a program may make one function again and again. `frame` is
    // one that runs the code.
    bool intern(const uint8_t* code, const uint8_t* frame, uint32_t* id) const;

  private:
    struct Content;

    // Of all code objects that there may be.
    bool deaths_are_told() const;
    // Of the object in its place, at little cost; `copy` is the object as it was read.
    bool identity(const uint8_t* code, const uint8_t* copy, uint64_t* found) const;
    bool add_text(const uint8_t* string, uint64_t* h) const;
    bool add_line_table(const uint8_t* bytes, uint64_t* h) const;
    bool find_content(const uint8_t* copy, Content* found) const;
    // Of all that its record holds.
    bool hash_content(const uint8_t* copy, uint64_t* found) const;
    bool hash_bytes(const uint8_t* data, size_t length, uint64_t* h) const;
    bool write(uint32_t id, const uint8_t* copy, const Text& template_lines) const;
    // What the module of generated code says of the template's lines; empty if it says nothing.
    Text find_template_lines(const uint8_t* code, const uint8_t* copy, const uint8_t* frame) const;
    bool are_template_lines(const Text& text) const;

    const tg_api* api_;
    const tg_offsets* at_;
    bool deaths_told_;
};

}  // namespace tachograph

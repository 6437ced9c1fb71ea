// Copies of memory that may not be there, in the processor's own instructions (arch/): few of each
// can fault, and each of those is known by its name.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int tachograph_guarded_copy(void* to, const void* from, size_t size);
extern "C" const char tachograph_guarded_copy_at[];
extern "C" const char tachograph_guarded_copy_word_at[];
extern "C" const char tachograph_guarded_copy_pair_at[];
extern "C" const char tachograph_guarded_copy_last_word_at[];
extern "C" const char tachograph_guarded_copy_last_pair_at[];
extern "C" const char tachograph_guarded_copy_failed[];
extern "C" int tachograph_guarded_load(uint64_t* to, uint64_t from);
extern "C" const char tachograph_guarded_load_at[];

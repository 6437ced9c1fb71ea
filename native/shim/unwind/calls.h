// Recognises calls in machine code.
#pragma once

#include <cstdint>

namespace tachograph::unwind::calls {

// Whether the bytes before an address are a call instruction.
bool end_at(uint64_t address);

// The same; and if it is a direct one, where it goes (0: it is indirect).
bool end_at(uint64_t address, uint64_t* target);

// Whether what begins there is a jump through a table, as in a PLT.
bool is_stub(uint64_t address);

}  // namespace tachograph::unwind::calls

// The registers of what a signal has interrupted.
#pragma once

#include <ucontext.h>
#include <cstdint>

namespace tachograph::arch {

inline uint64_t pc_of(const ucontext_t& interrupted) { return interrupted.uc_mcontext.pc; }

inline void set_pc(ucontext_t* interrupted, uint64_t pc) { interrupted->uc_mcontext.pc = pc; }

}  // namespace tachograph::arch

// The registers of what a signal has interrupted.
#pragma once

#include <ucontext.h>
#include <cstdint>

namespace tachograph::arch {

inline uint64_t pc_of(const ucontext_t& interrupted) {
    return static_cast<uint64_t>(interrupted.uc_mcontext.gregs[REG_RIP]);
}

inline void set_pc(ucontext_t* interrupted, uint64_t pc) {
    interrupted->uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(pc);
}

}  // namespace tachograph::arch

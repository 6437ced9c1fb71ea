// Whether the program has put a seccomp filter on itself: from then on any system call of ours that
// it does not make itself may be its death, so the hooks make none. Set by
// hooks/interpose_sandbox.cpp.
#pragma once

#include <atomic>

namespace tachograph::sandbox {

inline constinit std::atomic<bool> g_entered{false};

inline bool entered() { return g_entered.load(); }

}  // namespace tachograph::sandbox

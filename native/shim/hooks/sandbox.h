// What a program does to itself that the recorder must get out of the way of: seccomp, ptrace.
#pragma once

namespace tachograph::sandbox {

// Whether the program has put a seccomp filter on itself: from then on any system call of ours that
// it does not make itself may be its death.
bool entered();

}  // namespace tachograph::sandbox

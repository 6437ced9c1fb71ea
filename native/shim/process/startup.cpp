// What happens when the library is loaded: in every program of a recording, Python or not.
#include "base/kernel.h"
#include "memory/heap.h"
#include "process/audit.h"
#include "process/lifecycle.h"
#include "spool/child_ends.h"
#include "spool/process_log.h"
#include "spool/settings.h"

#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace tachograph {
namespace {

constexpr long kCancel = 32;
constexpr long kSetIds = 33;

// Registered before the loader's own function, and so run after all destructors.
void at_exit(int status, void*) {
    child_ends::flush();
    process_log::ended(status);
}

void at_quick_exit() {
    lifecycle::finish();
    child_ends::flush();
    process_log::ended(process_log::kStatusUnknown);
}

// The recording command starts its program by posix_spawn, which has glibc's own signals ignored in
// it, and in what it starts. Other callers fork. What the command's own caller ignores stays so.
void let_own_signals_be() {
    constexpr long kMask = sizeof(uint64_t);
    for (const long signal : {kCancel, kSetIds}) {
        if (settings::options().ignored >> (signal - kCancel) & 1) continue;
        uintptr_t action[4] = {};  // as the kernel has it; the handler comes first
        if (kernel::call(SYS_rt_sigaction, signal, 0, kernel::address(action), kMask) != 0 ||
            action[0] != reinterpret_cast<uintptr_t>(SIG_IGN))
            continue;
        memset(action, 0, sizeof action);
        kernel::call(SYS_rt_sigaction, signal, kernel::address(action), 0, kMask);
    }
}

__attribute__((constructor)) void at_load(int count, char** arguments, char** environment) {
    process_log::started_with(count, arguments);
    settings::Parent parent;
    settings::read_environment(environ, &parent);
    // Another library's constructor may have put an environment of its own in its place.
    if (environment != environ) settings::read_environment(environment, &parent);
    if (!settings::are_set()) return heap::expect_nothing();
    if (parent.pid < 0) let_own_signals_be();
    ::on_exit(at_exit, nullptr);
    ::at_quick_exit(at_quick_exit);
    process_log::open(settings::spool(), parent);
    if (!audit::watch()) heap::expect_nothing();
}

}  // namespace
}  // namespace tachograph

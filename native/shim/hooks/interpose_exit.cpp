// The ends that run no destructor: what is left is written before them. multiprocessing's children,
// for one, end with _exit.
#include "hooks/interposed.h"
#include "process/lifecycle.h"
#include "spool/child_ends.h"
#include "spool/process_log.h"

#include <unistd.h>
#include <cstdlib>

namespace tachograph {
namespace {

using Exit = void (*)(int);

constinit Exit g_exit = nullptr;

Exit real_exit() { return next_function(&g_exit, "_exit"); }

__attribute__((constructor)) void resolve() { real_exit(); }

[[noreturn]] void end(int status) {
    lifecycle::finish();
    child_ends::flush();
    process_log::ended(status);
    real_exit()(status);
    __builtin_unreachable();
}

}  // namespace
}  // namespace tachograph

TG_EXPORT void _exit(int status) { tachograph::end(status); }
TG_EXPORT void _Exit(int status) noexcept { tachograph::end(status); }

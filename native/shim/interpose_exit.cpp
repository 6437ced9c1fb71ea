// The ends that run no destructor: what is left is written before them. multiprocessing's children,
// for one, end with _exit.
#include "interposed.h"
#include "lifecycle.h"
#include "process_log.h"

#include <dlfcn.h>
#include <unistd.h>
#include <cstdlib>

namespace tachograph {
namespace {

using Exit = void (*)(int);

struct Real {
    Exit exit = nullptr;
};
constinit Real g;

Exit real_exit() {
    if (!g.exit) g.exit = reinterpret_cast<Exit>(dlsym(RTLD_NEXT, "_exit"));
    return g.exit;
}

__attribute__((constructor)) void resolve() { real_exit(); }

[[noreturn]] void end(int status) {
    lifecycle::finish();
    process_log::ended(status);
    real_exit()(status);
    __builtin_unreachable();
}

}  // namespace
}  // namespace tachograph

TG_EXPORT void _exit(int status) { tachograph::end(status); }
TG_EXPORT void _Exit(int status) noexcept { tachograph::end(status); }

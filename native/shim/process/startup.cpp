// What happens when the library is loaded: in every program of a recording, Python or not.
#include "memory/heap.h"
#include "process/audit.h"
#include "process/lifecycle.h"
#include "spool/child_ends.h"
#include "spool/process_log.h"
#include "spool/settings.h"

#include <unistd.h>
#include <cstdlib>

namespace tachograph {
namespace {

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

__attribute__((constructor)) void at_load(int count, char** arguments, char** environment) {
    process_log::started_with(count, arguments);
    settings::Parent parent;
    settings::read_environment(environ, &parent);
    // Another library's constructor may have put an environment of its own in its place.
    if (environment != environ) settings::read_environment(environment, &parent);
    if (!settings::are_set()) return heap::expect_nothing();
    ::on_exit(at_exit, nullptr);
    ::at_quick_exit(at_quick_exit);
    process_log::open(settings::spool(), parent);
    if (!audit::watch()) heap::expect_nothing();
}

}  // namespace
}  // namespace tachograph

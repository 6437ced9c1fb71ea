// Interposes dlclose, so that no call path is unwound with the rows of code that is gone, and no
// function of it is called.
#include "base/libc.h"
#include "hooks/interposed.h"
#include "memory/library_allocators.h"
#include "stacks/modules.h"
#include "stacks/recorder.h"
#include "unwind/images.h"

#include <link.h>

namespace tachograph {
namespace {

// How many libraries have been unloaded so far.
uint64_t unloaded() {
    uint64_t count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
            *static_cast<uint64_t*>(to) = info->dlpi_subs;
            return 1;
        },
        &count);
    return count;
}

}  // namespace
}  // namespace tachograph

using namespace tachograph;

TG_EXPORT int dlclose(void* handle) {
    if (!recording()) return real::dlclose(handle);
    const library_allocators::Unloading unloading;
    const uint64_t before = unloaded();
    unwind::images::closing();
    const int result = real::dlclose(handle);
    if (unloaded() == before) {
        unwind::images::stayed();
    } else {
        unwind::images::closed();
        modules::changed();
    }
    return result;
}

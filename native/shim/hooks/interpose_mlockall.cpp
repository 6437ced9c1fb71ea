// mlockall fills every page that is mapped. The recorder's tables are for programs larger than
// most, and most of their pages are never touched: filled, they would take hundreds of megabytes
// that no other program could have. They are locked as far as they are in use, and all else as it
// was meant.
#include "base/kernel.h"
#include "base/process_maps.h"
#include "hooks/interposed.h"
#include "spool/own_memory.h"
#include "stacks/recorder.h"

#include <cerrno>

namespace tachograph {
namespace {

constexpr int kWhenTouched = 4;  // MCL_ONFAULT, in no older header

// Where a page cannot be had, as behind the end of a file, mlockall goes on, too.
void fill(const process_maps::Mapping& mapping, void*) {
    for (own_memory::Range left{mapping.start, mapping.end}; left.begin < left.end;) {
        const own_memory::Range piece = own_memory::first_outside(left);
        kernel::call(SYS_mlock, static_cast<long>(piece.begin),
                     static_cast<long>(piece.end - piece.begin));
        left.begin = piece.end;
    }
}

long lock_all(int flags) {
    const bool fills = (flags & kWhenTouched) == 0;
    if (fills && (flags & MCL_CURRENT) != 0) {
        // Whether that is allowed does not depend on when pages come.
        const long refused = kernel::call(SYS_mlockall, flags | kWhenTouched);
        if (refused != 0) return refused;
        char buffer[8192];
        process_maps::each(buffer, sizeof buffer, fill, nullptr);
    } else if (const long refused = kernel::call(SYS_mlockall, flags); refused != 0) {
        return refused;
    }
    const bool future = fills && (flags & MCL_FUTURE) != 0;
    kernel::g_fills_mappings.store(future, std::memory_order_relaxed);
    return future ? kernel::call(SYS_mlockall, MCL_FUTURE) : 0;
}

}  // namespace
}  // namespace tachograph

using namespace tachograph;

TG_EXPORT int mlockall(int flags) noexcept {
    const long result = live() ? lock_all(flags) : kernel::call(SYS_mlockall, flags);
    if (result == 0) return 0;
    errno = static_cast<int>(-result);
    return -1;
}

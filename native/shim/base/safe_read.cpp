#include "base/safe_read.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "tachograph/guarded_copy.h"

#include <sys/uio.h>
#include <cerrno>
#include <cstring>
#include <initializer_list>

// Where each `peek` reads, and where it goes on; both from where they stand. What the linker has at
// both ends of their section.
struct GuardedRead {
    int32_t at;
    int32_t next;
};
extern "C" __attribute__((visibility("hidden"))) const GuardedRead __start_tachograph_guarded[];
extern "C" __attribute__((visibility("hidden"))) const GuardedRead __stop_tachograph_guarded[];

namespace tachograph::safe_read {
namespace {

uintptr_t from_where_it_stands(const int32_t& distance) {
    return reinterpret_cast<uintptr_t>(&distance) + static_cast<uintptr_t>(intptr_t{distance});
}

// initial-exec: no allocation on first use, so it may be touched in a signal handler
__thread bool t_kernel __attribute__((tls_model("initial-exec"))) = false;
}  // namespace

void use_kernel(bool yes) { t_kernel = yes; }
bool kernel_chosen() { return t_kernel; }

bool copy(void* to, const void* from, size_t size) {
    if (reinterpret_cast<uintptr_t>(from) < pages::kPiece) return false;
    if (!t_kernel) return tachograph_guarded_copy(to, from, size) != 0;
    iovec local{to, size};
    iovec remote{const_cast<void*>(from), size};
    return kernel::call(SYS_process_vm_readv, kernel::getpid(), kernel::address(&local), 1,
                        kernel::address(&remote), 1, 0) == static_cast<long>(size);
}

bool readable(uintptr_t address) {
    constexpr long kNoSuchWay = -1;
    constexpr size_t kMask = 8;
    // The kernel reads the mask before it refuses what is to be done with it.
    return kernel::call(SYS_rt_sigprocmask, kNoSuchWay, static_cast<long>(address & ~(kMask - 1)),
                        0, kMask) == -EINVAL;
}

bool copy_checked(void* to, const void* from, size_t size) {
    const auto begin = reinterpret_cast<uintptr_t>(from);
    if (begin < pages::kPiece || size == 0) return false;
    for (uintptr_t at = begin; at < begin + size; at = pages::begin_of(at) + pages::size())
        if (!readable(at)) return false;
    memcpy(to, from, size);
    return true;
}

bool load(uint64_t* to, uint64_t from) {
    if (t_kernel) return copy(to, reinterpret_cast<const void*>(from), sizeof *to);
    return from >= pages::kPiece && tachograph_guarded_load(to, from) != 0;
}

uintptr_t recovery(uintptr_t pc) {
    for (const char* const at :
         {tachograph_guarded_copy_at, tachograph_guarded_copy_word_at,
          tachograph_guarded_copy_pair_at, tachograph_guarded_copy_last_word_at,
          tachograph_guarded_copy_last_pair_at, tachograph_guarded_load_at})
        if (pc == reinterpret_cast<uintptr_t>(at))
            return reinterpret_cast<uintptr_t>(tachograph_guarded_copy_failed);
    for (const GuardedRead* read = __start_tachograph_guarded; read < __stop_tachograph_guarded;
         ++read)
        if (pc == from_where_it_stands(read->at)) return from_where_it_stands(read->next);
    return 0;
}

}  // namespace tachograph::safe_read

// What the allocators that libraries bring say of themselves.
//
// A library that has jemalloc built in (polars, duckdb, pyarrow) has jemalloc's function mallctl,
// under a name with a prefix, often as a local symbol. It is looked up in the library's file, and
// called only if the code in memory is that of the file and answers as mallctl does.
//
// mallctl takes jemalloc's locks: none of this is for signal handlers and hooks, but `Unloading`.
#pragma once

#include "base/bounded_lock.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::library_allocators {

// Bytes.
struct Use {
    uint64_t function = 0;  // the mallctl that said so
    int64_t in_use = 0;     // pages with blocks
    int64_t live = 0;       // blocks; of a jemalloc that does not count them pages with blocks
    int64_t dirty = 0;      // free pages that it has not given back
    int64_t muzzy = 0;      // free pages that the kernel may take (MADV_FREE)
};

inline constexpr size_t kMost = 8;  // libraries

// Much memory is on pages that the code at `pc` has reserved: its library is to be searched.
void reserved_by(uint64_t pc);
// The recorder's own thread: goes on searching, for a part of a millisecond. True: it has found
// one.
bool search();
// Asks each that was found, and returns how many have answered.
size_t ask(Use (&to)[kMost]);

void after_fork_in_child();

extern std::atomic_flag g_busy __attribute__((visibility("hidden")));       // while one is asked
extern std::atomic<int> g_unloading __attribute__((visibility("hidden")));  // threads in dlclose
// While a library is being unloaded no function of it is called. It waits for a question that is
// under way, and not for another dlclose, which may be the one that this one is called in.
class Unloading {
  public:
    Unloading() {
        g_unloading.fetch_add(1);
        const BoundedLock no_question(g_busy, Until{kernel::monotonic_ns() + kPatienceNs});
    }
    ~Unloading() { g_unloading.fetch_sub(1); }
    Unloading(const Unloading&) = delete;
    Unloading& operator=(const Unloading&) = delete;

  private:
    static constexpr int64_t kPatienceNs = 50'000'000;
};

}  // namespace tachograph::library_allocators

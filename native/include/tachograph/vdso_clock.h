// The kernel's own clock, past any library that replaces the C library's: libfaketime
// tells another time and takes a lock, a sanitizer or a replayer does work of its own. Safe in
// signal handlers, and costs no system call.
#pragma once

#include "arch/system_call.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace tachograph::vdso_clock {

using Function = int (*)(clockid_t, timespec*);

inline int by_system_call(clockid_t clock, timespec* time) {
    return static_cast<int>(
        arch::system_call(SYS_clock_gettime, clock, reinterpret_cast<long>(time)));
}

// What the kernel's image says of its symbols.
struct Symbols {
    uintptr_t bias = 0;
    const Elf64_Sym* table = nullptr;
    const char* names = nullptr;
    const uint32_t* hash = nullptr;
    const uint32_t* gnu_hash = nullptr;

    // The last bucket's chain has the last symbol.
    uint32_t count() const {
        if (hash) return hash[1];
        if (!gnu_hash) return 0;
        const uint32_t buckets = gnu_hash[0];
        const uint32_t first = gnu_hash[1];
        const uint32_t* bucket = gnu_hash + 4 + size_t{2} * gnu_hash[2];
        const uint32_t* chain = bucket + buckets;
        uint32_t last = 0;
        for (uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
        if (last < first) return 0;
        while ((chain[last - first] & 1) == 0) ++last;
        return last + 1;
    }
};

inline Symbols symbols_of(uintptr_t image) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
    const auto* program = reinterpret_cast<const Elf64_Phdr*>(image + header->e_phoff);
    Symbols found;
    const Elf64_Dyn* entry = nullptr;
    bool loaded = false;
    for (int i = 0; i < header->e_phnum; ++i) {
        if (program[i].p_type == PT_LOAD && !loaded) {
            found.bias = image + program[i].p_offset - program[i].p_vaddr;
            loaded = true;
        }
        if (program[i].p_type == PT_DYNAMIC)
            entry = reinterpret_cast<const Elf64_Dyn*>(image + program[i].p_offset);
    }
    for (; entry && loaded && entry->d_tag != DT_NULL; ++entry) {
        const uintptr_t at = found.bias + entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB) found.table = reinterpret_cast<const Elf64_Sym*>(at);
        if (entry->d_tag == DT_STRTAB) found.names = reinterpret_cast<const char*>(at);
        if (entry->d_tag == DT_HASH) found.hash = reinterpret_cast<const uint32_t*>(at);
        if (entry->d_tag == DT_GNU_HASH) found.gnu_hash = reinterpret_cast<const uint32_t*>(at);
    }
    return found;
}

// The system call where there is no such image (a tracer may take it away), or no such function.
inline Function find() {
    const uintptr_t image = getauxval(AT_SYSINFO_EHDR);
    if (image == 0) return by_system_call;
    const Symbols symbols = symbols_of(image);
    if (!symbols.table || !symbols.names) return by_system_call;
    for (uint32_t i = 0; i < symbols.count(); ++i) {
        const Elf64_Sym& symbol = symbols.table[i];
        if (symbol.st_shndx != SHN_UNDEF &&
            strcmp(symbols.names + symbol.st_name, arch::kClockFunction) == 0)
            return reinterpret_cast<Function>(symbols.bias + symbol.st_value);
    }
    return by_system_call;
}

inline constinit std::atomic<Function> g_function{nullptr};

// The processor's time stamp counter is about to be forbidden to the program (PR_SET_TSC), and the
// kernel's function reads it.
inline void avoid_time_stamps() { g_function.store(by_system_call, std::memory_order_relaxed); }

// CLOCK_MONOTONIC or CLOCK_REALTIME in ns; other clocks are system calls in any case.
inline int64_t read_ns(clockid_t clock) {
    Function function = g_function.load(std::memory_order_relaxed);
    if (__builtin_expect(!function, 0)) {
        function = find();
        g_function.store(function, std::memory_order_relaxed);
    }
    timespec time{};
    function(clock, &time);
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace tachograph::vdso_clock

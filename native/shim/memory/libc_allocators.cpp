#include "memory/libc_allocators.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "memory/heap.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace tachograph::libc_allocators {
namespace {

constexpr size_t kHeader = 16;

struct State {
    Functions foreign{};  // another allocator's, preloaded as well
    bool looking_up = false;
    size_t lent = 0;
};
constinit State g;

template <typename F>
void find(F* place, const char* name) {
    if (void* symbol = dlsym(RTLD_NEXT, name)) *place = reinterpret_cast<F>(symbol);
}

// An allocator that is not libc's maps its memory through the functions that we interpose:
// those mappings are not the program's, they hold its blocks.
template <typename F, typename... A>
auto uncounted(F function, A... arguments) {
    heap::Local& local = heap::t_local;
    const bool before = local.uncounted;
    local.uncounted = true;
    if constexpr (__is_same(decltype(function(arguments...)), void)) {
        function(arguments...);
        local.uncounted = before;
    } else {
        const auto result = function(arguments...);
        local.uncounted = before;
        return result;
    }
}

bool same_library(void* a, void* b) {
    Dl_info first;
    Dl_info second;
    return dladdr(a, &first) && dladdr(b, &second) && first.dli_fbase == second.dli_fbase;
}

void stand_before_foreign(Functions* f) {
    g.foreign = *f;
    void* operator_new = dlsym(RTLD_DEFAULT, "_Znwm");
    heap::g_operator_new_unseen =
        operator_new && same_library(operator_new, reinterpret_cast<void*>(f->malloc));
    f->malloc = [](size_t n) { return uncounted(g.foreign.malloc, n); };
    f->calloc = [](size_t n, size_t m) { return uncounted(g.foreign.calloc, n, m); };
    f->realloc = [](void* p, size_t n) { return uncounted(g.foreign.realloc, p, n); };
    f->free = [](void* p) { uncounted(g.foreign.free, p); };
    f->posix_memalign = [](void** p, size_t a, size_t n) {
        return uncounted(g.foreign.posix_memalign, p, a, n);
    };
    f->aligned_alloc = [](size_t a, size_t n) { return uncounted(g.foreign.aligned_alloc, a, n); };
    f->memalign = [](size_t a, size_t n) { return uncounted(g.foreign.memalign, a, n); };
    f->valloc = [](size_t n) { return uncounted(g.foreign.valloc, n); };
    f->pvalloc = [](size_t n) { return uncounted(g.foreign.pvalloc, n); };
}

// Not with large blocks: glibc learns from the first of them that is freed when to map them, and
// the program's memory would lie differently from then on.
bool sizes_agree(const Functions& f) {
    for (const size_t size : {size_t{1}, size_t{24}, size_t{25}, size_t{1000}, size_t{70'000}}) {
        void* block = f.malloc(size);
        if (!block) return false;
        const bool agree = chunk_size(block) == f.malloc_usable_size(block);
        f.free(block);
        if (!agree) return false;
    }
    return true;
}

// The first definition in the order of loading, unless that is this library's, or what is behind it
// (where this library was loaded late, the C library's comes first).
template <typename F>
F programs_own(const char* name, F behind) {
    void* first = dlsym(RTLD_DEFAULT, name);
    const bool own = first && first != reinterpret_cast<void*>(behind) &&
                     !same_library(first, static_cast<void*>(&g));
    return own ? reinterpret_cast<F>(first) : nullptr;
}

// False while a lookup is under way.
bool look_up() {
    if (g.looking_up) return false;
    g.looking_up = true;
    Functions f = g_real;
    find(&f.malloc, "malloc");
    find(&f.calloc, "calloc");
    find(&f.realloc, "realloc");
    find(&f.free, "free");
    find(&f.posix_memalign, "posix_memalign");
    find(&f.aligned_alloc, "aligned_alloc");
    find(&f.memalign, "memalign");
    find(&f.valloc, "valloc");
    find(&f.pvalloc, "pvalloc");
    find(&f.malloc_usable_size, "malloc_usable_size");
    find(&f.mmap, "mmap");
    find(&f.munmap, "munmap");
    find(&f.mremap, "mremap");
    find(&f.madvise, "madvise");
    g_programs = {programs_own("realloc", f.realloc), programs_own("free", f.free)};
    // A function of libc's that no library has a reason to interpose.
    if (!same_library(reinterpret_cast<void*>(f.malloc),
                      reinterpret_cast<void*>(&gnu_get_libc_version)))
        stand_before_foreign(&f);
    else
        g_libc_chunks = sizes_agree(f);
    if (!g_libc_chunks) heap::g_mapped_chunks.store(INT64_MIN / 2);
    g_real = f;
    g.looking_up = false;
    return true;
}

void* lend(size_t size) {
    const size_t whole = (size + kHeader + kLentAlignment - 1) / kLentAlignment * kLentAlignment;
    if (whole > kLentSize - g.lent) {
        errno = ENOMEM;
        return nullptr;
    }
    uint8_t* block = g_lent_pool + g.lent + kHeader;
    memcpy(block - kHeader, &size, sizeof size);
    g.lent += whole;
    heap::g_lent = true;
    return block;
}

__attribute__((constructor)) void at_load() { look_up(); }

}  // namespace

bool g_libc_chunks = false;
Programs g_programs;
alignas(kLentAlignment) TG_LARGE_ZEROS uint8_t g_lent_pool[kLentSize] = {};

constinit Functions g_real = {
    .malloc = [](size_t n) { return look_up() ? g_real.malloc(n) : lend(n); },
    .calloc = [](size_t n, size_t m) { return look_up() ? g_real.calloc(n, m) : lend(n * m); },
    .realloc = [](void* p, size_t n) { return look_up() ? g_real.realloc(p, n) : lend(n); },
    .free =
        [](void* p) {
            if (look_up()) g_real.free(p);
        },
    .posix_memalign = [](void** p, size_t a,
                         size_t n) { return look_up() ? g_real.posix_memalign(p, a, n) : ENOMEM; },
    .aligned_alloc = [](size_t a,
                        size_t n) { return look_up() ? g_real.aligned_alloc(a, n) : nullptr; },
    .memalign = [](size_t a, size_t n) { return look_up() ? g_real.memalign(a, n) : nullptr; },
    .valloc = [](size_t n) { return look_up() ? g_real.valloc(n) : nullptr; },
    .pvalloc = [](size_t n) { return look_up() ? g_real.pvalloc(n) : nullptr; },
    .malloc_usable_size = [](void* p) { return look_up() ? g_real.malloc_usable_size(p) : 0; },
    .mmap =
        [](void* at, size_t n, int protection, int flags, int fd, off_t offset) {
            return look_up() ? g_real.mmap(at, n, protection, flags, fd, offset) : MAP_FAILED;
        },
    .munmap = [](void* at, size_t n) { return look_up() ? g_real.munmap(at, n) : -1; },
    .mremap = [](void* at, size_t n, size_t m, int flags,
                 void* to) { return look_up() ? g_real.mremap(at, n, m, flags, to) : MAP_FAILED; },
    .madvise = [](void* at, size_t n,
                  int advice) { return look_up() ? g_real.madvise(at, n, advice) : -1; },
};

size_t lent_size(const void* block) {
    size_t size;
    memcpy(&size, static_cast<const uint8_t*>(block) - kHeader, sizeof size);
    return size;
}

}  // namespace tachograph::libc_allocators

// Hooks of mmap, munmap and mremap: anonymous memory that the program maps itself is counted like a
// block. Of address space that was only reserved (PROT_NONE, MAP_NORESERVE) what is in use is
// counted (reserves.h): allocators take a gigabyte of it to begin with.
#include "base/pages.h"
#include "hooks/interposed.h"
#include "memory/heap.h"
#include "memory/libc_allocators.h"
#include "memory/mappings.h"
#include "memory/releases.h"
#include "memory/reserves.h"
#include "stacks/modules.h"

#include <sys/mman.h>
#include <cerrno>
#include <cstdarg>
#include <cstdint>

using namespace tachograph;
using libc_allocators::g_real;

namespace {

using heap::counting;

size_t whole_pages(size_t size) { return pages::round_up(size); }

bool begins_page(uintptr_t address) { return pages::begin_of(address) == address; }

// A mapping is in a domain of its own, wherever it is made.
class Mapped {
  public:
    Mapped() : before_(heap::t_local.domain) { heap::t_local.domain = TG_DOMAIN_MAPPED; }
    ~Mapped() { heap::t_local.domain = before_; }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

  private:
    uint8_t before_;
};

void book(const mappings::Change& change, const void* at, size_t requested, const void* caller) {
    const Mapped domain;
    if (change.unmapped > 0) heap::gave(heap::t_local, change.unmapped);
    if (change.mapped > 0) heap::took(heap::t_local, at, change.mapped, requested, caller);
}

void* map(void* at, size_t size, int protection, int flags, int fd, off_t offset,
          const void* caller) {
    void* got = g_real.mmap(at, size, protection, flags, fd, offset);
    if (got == MAP_FAILED) return got;
    if (__builtin_expect((protection & PROT_EXEC) != 0, 0)) modules::changed();
    if (!counting()) return got;
    const int error = errno;
    const auto address = reinterpret_cast<uintptr_t>(got);
    const size_t whole = whole_pages(size);
    const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
    const bool promised = (flags & MAP_NORESERVE) == 0 && protection != PROT_NONE;
    const bool reserved = !promised || whole >= reserves::kLarge;
    if (anonymous && reserved)
        reserves::add(address, address + whole,
                      promised ? reserves::caller_of(caller) : reserves::reserved_by(caller));
    else
        reserves::remove(address, address + whole);
    if (anonymous && !reserved)
        book(mappings::add(address, whole), got, size, caller);
    else if ((flags & MAP_FIXED) != 0)
        book(mappings::remove(address, whole), got, size, caller);
    errno = error;
    return got;
}

}  // namespace

TG_EXPORT void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    return map(at, size, protection, flags, fd, offset, __builtin_return_address(0));
}

TG_EXPORT void* mmap64(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    return map(at, size, protection, flags, fd, offset, __builtin_return_address(0));
}

TG_EXPORT int munmap(void* at, size_t size) {
    // Before it is gone: afterwards the address may be another thread's.
    const bool ours = counting();
    const auto address = reinterpret_cast<uintptr_t>(at);
    if (ours && begins_page(address) && size > 0) {
        reserves::remove(address, address + whole_pages(size));
        book(mappings::remove(address, whole_pages(size)), at, size, nullptr);
    } else {
        releases::tell(at, size);
    }
    return g_real.munmap(at, size);
}

TG_EXPORT void* mremap(void* at, size_t old_size, size_t size, int flags, ...) {
    void* to = nullptr;
    if ((flags & MREMAP_FIXED) != 0) {
        va_list arguments;
        va_start(arguments, flags);
        to = va_arg(arguments, void*);
        va_end(arguments);
    }
    const auto address = reinterpret_cast<uintptr_t>(at);
    const bool counted = counting() && old_size > 0;
    const bool ours = counted && mappings::holds(address, whole_pages(old_size));
    reserves::Owner owner;
    const bool reserved =
        counted && reserves::holds(address, address + whole_pages(old_size), &owner);
    if (reserved) reserves::look_at(address, address + whole_pages(old_size));
    if (!counted) releases::tell(at, old_size);
    void* got = g_real.mremap(at, old_size, size, flags, to);
    if (got == MAP_FAILED || (!ours && !reserved)) return got;
    const int error = errno;
    if (reserved) {
        reserves::remove(address, address + whole_pages(old_size));
        const auto moved = reinterpret_cast<uintptr_t>(got);
        reserves::add(moved, moved + whole_pages(size), owner);
        errno = error;
        return got;
    }
    book(mappings::remove(address, whole_pages(old_size)), at, old_size, nullptr);
    book(mappings::add(reinterpret_cast<uintptr_t>(got), whole_pages(size)), got, size,
         __builtin_return_address(0));
    errno = error;
    return got;
}

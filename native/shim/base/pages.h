// Pages, which are larger on some machines than on others, and pieces of 4 KiB, in which resident
// memory is counted on all of them.
#pragma once

#include "arch/memory.h"
#include "base/kernel.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::pages {

// No page is smaller, and the first one of an address space is never mapped. The pieces of one page
// come and go together.
inline constexpr uintptr_t kPiece = 4096;

inline uintptr_t size() { return arch::page_size(); }
inline uintptr_t begin_of(uintptr_t address) { return address & ~(size() - 1); }
inline uintptr_t round_up(uintptr_t bytes) { return begin_of(bytes + size() - 1); }

// Of a byte for each page, as many for each piece; the first piece begins so far in its page.
inline void spread(uint8_t* bytes, size_t pieces, uintptr_t before, uintptr_t page) {
    // From the last one on: no page's byte lies behind those of its pieces.
    for (size_t piece = pieces; piece-- > 0;)
        bytes[piece] = bytes[(before + piece * kPiece) / page];
}

// A byte for each piece of [begin, end), whose lowest bit says whether it is in memory; `begin` is
// that of a piece. Negative: an errno; some of it is no mapping.
inline long ask(uintptr_t begin, uintptr_t end, uint8_t* pieces) {
    const uintptr_t first = begin_of(begin);
    const long failed = kernel::call(SYS_mincore, static_cast<long>(first),
                                     static_cast<long>(end - first), kernel::address(pieces));
    if (failed == 0 && size() > kPiece)
        spread(pieces, (end - begin + kPiece - 1) / kPiece, begin - first, size());
    return failed;
}

// Bytes of [begin, end) in memory, by the piece; `begin` is that of one. What is no
// mapping is in none.
inline uintptr_t resident(uintptr_t begin, uintptr_t end) {
    uint8_t pieces[1024];
    uintptr_t bytes = 0;
    for (uintptr_t at = begin; at < end;) {
        const uintptr_t left = (end - at + kPiece - 1) / kPiece;
        const uintptr_t some = left < sizeof pieces ? left : sizeof pieces;
        const uintptr_t to = at + some * kPiece;
        if (ask(at, to < end ? to : end, pieces) == 0)
            for (uintptr_t piece = 0; piece < some; ++piece)
                bytes += (pieces[piece] & 1) != 0 ? kPiece : 0;
        at = to;
    }
    return bytes;
}

}  // namespace tachograph::pages

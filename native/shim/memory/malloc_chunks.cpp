#include "memory/malloc_chunks.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/safe_read.h"

namespace tachograph::malloc_chunks {
namespace {

constexpr uintptr_t kAlignment = 16;
constexpr uint64_t kFlags = 7;
constexpr uint64_t kPreviousInUse = 1;
constexpr uint64_t kLeastChunk = 32;
constexpr uintptr_t kFenceposts = 64;  // what ends a heap that could not grow
constexpr uint32_t kAsked = 1024;      // chunks between two looks at the clock
// Of struct malloc_state, which the first heap of an arena has behind its header (glibc 2.26 on).
constexpr uintptr_t kArenaSize = 0x898;
constexpr uintptr_t kMostHeader = 0x40;

// Live bytes of pages in the order of their addresses.
class Pages {
  public:
    explicit Pages(Sparse* to) : to_(to), size_(pages::size()) {}
    void block(uintptr_t begin, uintptr_t end) {
        add(begin, end);
        if (begin / size_ == (end - 1) / size_) return;
        // Pages in the middle are full.
        add(end & ~(size_ - 1), end);
    }
    void close() {
        if (live_ > 0 && live_ * kSparse <= static_cast<int64_t>(size_)) {
            to_->pages += static_cast<int64_t>(size_);
            to_->live += live_;
        }
        live_ = 0;
    }

  private:
    void add(uintptr_t begin, uintptr_t end) {
        if (begin >= end) return;
        if (begin / size_ != page_) close();
        page_ = begin / size_;
        const uintptr_t border = (page_ + 1) * size_;
        live_ += static_cast<int64_t>((end < border ? end : border) - begin);
    }

    Sparse* to_;
    uintptr_t size_;
    uintptr_t page_ = 0;
    int64_t live_ = 0;
};

}  // namespace

bool walk(uintptr_t first, uintptr_t end, Limit* limit, Sparse* to) {
    Sparse found;
    Pages live(&found);
    uint64_t head = 0;
    if (first % kAlignment != 0 || first + kLeastChunk > end ||
        !safe_read::load(&head, first + sizeof head))
        return false;
    for (uintptr_t at = first;;) {
        const uint64_t size = head & ~kFlags;
        if (size < kLeastChunk) {
            if (end - at > kFenceposts) return false;
            break;
        }
        if (size % kAlignment != 0 || size > end - at || limit->chunks == 0) return false;
        if (--limit->chunks % kAsked == 0 && kernel::own_cpu_ns() > limit->until_cpu_ns)
            return false;
        const uintptr_t next = at + size;
        if (next == end) break;  // the top: free
        if (!safe_read::load(&head, next + sizeof head)) return false;
        if ((head & kPreviousInUse) != 0) live.block(at, next);
        at = next;
    }
    live.close();
    to->pages += found.pages;
    to->live += found.live;
    return true;
}

bool find_in_further_heap(uintptr_t heap, uintptr_t* first, uintptr_t* end) {
    uint64_t arena = 0;
    uint64_t size = 0;
    if (!safe_read::load(&arena, heap) || !safe_read::load(&size, heap + 2 * sizeof arena))
        return false;
    const bool is_first = arena - heap <= kMostHeader;
    // The arena lies right behind the header of its first heap; all headers are of one size.
    const uintptr_t header = arena & (2 * kMostHeader - 1);
    const uintptr_t begin = is_first ? arena + kArenaSize : heap + header;
    *first = (begin + kAlignment - 1) & ~(kAlignment - 1);
    *end = heap + size;
    return size % pages::size() == 0 && *first < *end;
}

}  // namespace tachograph::malloc_chunks

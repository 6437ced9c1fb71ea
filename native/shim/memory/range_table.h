// A table of address ranges, sorted and apart from each other.
//
// Its memory is mapped once and never grows, so that it is safe to use in an allocator and in a
// signal handler. Not for several threads at once: its owner has a lock.
#pragma once

#include "spool/own_memory.h"
#include "spool/spool.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tachograph {

// `Range` has at least `begin` and `end`; the table holds up to `kMost` of them.
template <typename Range, size_t kMost>
class RangeTable {
    static_assert(std::is_trivially_copyable_v<Range>);

  public:
    // Maps the memory. False: there is none.
    bool open() { return ranges_ || own_memory::map(&ranges_, sizeof(Range) * kMost); }
    bool is_open() const { return ranges_ != nullptr; }

    size_t count() const { return count_; }
    Range& operator[](size_t at) { return ranges_[at]; }

    // The first range that ends behind `address`; `count()` if there is none.
    size_t first_behind(uintptr_t address) const {
        size_t low = 0;
        size_t high = count_;
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (ranges_[middle].end <= address)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    // `at` is where the range belongs. False: the table is full, which is counted as a loss.
    bool insert(size_t at, const Range& range) {
        if (count_ >= kMost) {
            spool::count(Loss::mappings_untracked);
            return false;
        }
        memmove(ranges_ + at + 1, ranges_ + at, (count_ - at) * sizeof(Range));
        ranges_[at] = range;
        ++count_;
        return true;
    }

    void erase(size_t at) {
        --count_;
        memmove(ranges_ + at, ranges_ + at + 1, (count_ - at) * sizeof(Range));
    }

  private:
    Range* ranges_ = nullptr;
    size_t count_ = 0;
};

}  // namespace tachograph

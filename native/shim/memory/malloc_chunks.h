// glibc's chunks in a heap, one behind the other by the sizes in front of them: which pages are
// held by few bytes that live.
//
// Nothing is locked: other threads change the heap meanwhile. What does not lead from chunk to
// chunk to the heap's end says nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::malloc_chunks {

// Pages with live blocks that take at most this part of them.
inline constexpr int64_t kSparse = 4;

struct Sparse {
    int64_t pages = 0;  // bytes of such pages
    int64_t live = 0;   // bytes of the blocks on them
};

// Chunks that may be looked at, and the CPU time of the thread until which.
struct Limit {
    uint32_t chunks;
    int64_t until_cpu_ns;
};

// Chunks from `first` on, in a heap that ends at `end`. Blocks that a thread keeps for itself when
// they are released (tcache), and small ones that are not merged yet, count as live. False: the
// heap is not as expected, or the limit was reached. To be called where reads are guarded.
bool walk(uintptr_t first, uintptr_t end, Limit* limit, Sparse* to);

// The first chunk of one of the further heaps, which begins at `heap`, and where its chunks end.
bool find_in_further_heap(uintptr_t heap, uintptr_t* first, uintptr_t* end);

}  // namespace tachograph::malloc_chunks

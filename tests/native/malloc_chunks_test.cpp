// Chunks of a heap that is laid out here as glibc does it.
#include "memory/malloc_chunks.h"

#include "check.h"

#include <cstring>
#include <initializer_list>

using namespace tachograph;

namespace {

constexpr size_t kHeap = 256 << 10;
constexpr uint64_t kInUse = 1;  // of the chunk before

alignas(4096) uint8_t g_heap[kHeap];

class Heap {
  public:
    Heap() { memset(g_heap, 0, sizeof g_heap); }
    void add(uint64_t size, bool lives) {
        const uint64_t head = size | (before_lives_ ? kInUse : 0);
        memcpy(g_heap + used_ + 8, &head, sizeof head);
        used_ += size;
        before_lives_ = lives;
    }
    void end() { add(kHeap - used_, false); }
    uintptr_t first() const { return reinterpret_cast<uintptr_t>(g_heap); }
    uintptr_t limit() const { return first() + kHeap; }

  private:
    uint64_t used_ = 0;
    bool before_lives_ = true;
};

bool walk(const Heap& heap, malloc_chunks::Sparse* found, uint32_t most = 1 << 20) {
    malloc_chunks::Limit limit{most, INT64_MAX};
    return malloc_chunks::walk(heap.first(), heap.limit(), &limit, found);
}

}  // namespace

TEST(malloc_chunks_pages_that_few_bytes_pin) {
    Heap heap;
    for (int page = 0; page < 10; ++page) {  // 208 of 4096 bytes live
        heap.add(208, true);
        heap.add(4096 - 208, false);
    }
    heap.add(3 * 4096, true);   // full pages
    heap.add(4096, false);      // one that nothing is on
    heap.add(4096 + 64, true);  // a full one, and 64 bytes of the next
    heap.add(4096 - 64, false);
    for (int chunk = 0; chunk < 16; ++chunk) heap.add(256, chunk % 2 == 0);  // half of a page
    heap.end();
    malloc_chunks::Sparse found;
    CHECK(walk(heap, &found));
    CHECK(found.pages == 11 * 4096 && found.live == 10 * 208 + 64);
    // Nothing is said of a heap that was not looked at to its end.
    malloc_chunks::Sparse none;
    CHECK(!walk(heap, &none, 20));
    CHECK(none.pages == 0 && none.live == 0);
}

TEST(malloc_chunks_of_a_damaged_heap_say_nothing) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{24}, uint64_t{40}, uint64_t{kHeap}}) {
        Heap heap;
        heap.add(4096, true);
        heap.add(64, false);
        heap.add(size == 0 ? 16 : size, true);
        malloc_chunks::Sparse found;
        CHECK(!walk(heap, &found));
        CHECK(found.pages == 0);
    }
}

TEST(malloc_chunks_fenceposts_end_a_heap) {
    Heap heap;
    heap.add(64, true);
    heap.add(kHeap - 64 - 32, false);
    heap.add(16, true);
    heap.add(16, true);
    malloc_chunks::Sparse found;
    CHECK(walk(heap, &found));
    CHECK(found.pages == 4096 && found.live == 64);
}

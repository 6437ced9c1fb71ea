// The sampled blocks that are alive, each followed to its free.
//
// Once a second the recorder's own thread looks at those that are a second old. Of those that have
// died and of those that live on it writes no more than the log has room for (thinning.h); those
// that it leaves out are forgotten, and those that it writes are followed on.
#pragma once

#include "memory/block.h"
#include "tachograph/api.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph::blocks {

inline constexpr uint32_t kFilterBits = 15;

// How many followed blocks share a page's place, and how many share a block's: 0 for nearly every
// block that is freed. The first table is small, and blocks that are freed one after the other are
// often neighbours, so asking it costs next to nothing.
inline constexpr uint32_t kPageBits = 12;
extern std::atomic<uint8_t> g_pages[1u << kPageBits] __attribute__((visibility("hidden")));
extern std::atomic<uint8_t> g_filter[1u << kFilterBits] __attribute__((visibility("hidden")));

inline uint32_t page_of(const void* block) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(block) >> 12) & ((1u << kPageBits) - 1);
}

inline uint32_t hash_of(const void* block) {
    return static_cast<uint32_t>((reinterpret_cast<uint64_t>(block) >> 4) * 0x9E3779B97F4A7C15ull >>
                                 (64 - kFilterBits));
}

// A page of 4 KiB, or one that shares its place.
inline bool page_has_followed(const void* in_it) {
    return __builtin_expect(g_pages[page_of(in_it)].load(std::memory_order_relaxed) != 0, 0);
}

inline bool maybe_followed(const void* block) {
    return page_has_followed(block) &&
           g_filter[hash_of(block)].load(std::memory_order_relaxed) != 0;
}

bool open();
// In a forked child: what the parent followed is not followed here.
void forget_all();
// Follows a block from now on, or, if there is no room, writes it as one that is not followed.
void follow(const void* block, const Block& what);
// A block, or whatever has its address, is about to be freed.
void died(const void* block);

// The same in two steps, for realloc: a failed one frees nothing. kNone: it is not followed.
uint32_t claim(const void* block);
// When; 0 if it was not followed. `goes_on`: is filled with what it was, and the block that it has
// become must be followed from now on.
int64_t settle(uint32_t claimed, Block* goes_on = nullptr);
void restore(uint32_t claimed, const void* block);
// A claimed block has grown to `size` bytes where it is. True: the row that it waits for will say
// so, and it may be restored. False: the step is worth a row, or the block has its row.
bool grew_little(uint32_t claimed, size_t size, size_t requested);

// Which are written: those that are old enough; all, as the window ends, but no more than leaves
// room in the table; all, as the recording ends, and room is of no use any more. At its very end
// those that find none in the spool are lost.
enum class Rows : uint8_t { old, window, last, end };
// The recorder's own thread, or the one that ends the recording. How many rows.
uint32_t write(int64_t now_ns, Rows which);
// How full the table is, in 1/1000.
uint32_t filling();

// Live blocks of the stacks that hold most, those of one stack behind each other; how many.
size_t largest(tg_live_block* found, size_t most);

// A block that is so large that the program may have touched only a part of it.
struct Large {
    uint32_t place;
    uint32_t id;
    uintptr_t address;
    int64_t size;
    int64_t told;  // bytes of it that were in memory when that was last told; kUntold: never
};
// Such blocks are all in the sample, unless it is coarser than usual.
inline constexpr int64_t kLarge = 4 * 1024 * 1024;
inline constexpr int64_t kUntold = -1;

bool any_large();
// The first that has its row, at `place` of the table or behind it. False: there is none.
bool large_from(uint32_t place, Large* found);
// Writes how much of it is in memory, unless it has died.
void tell(const Large& block, int64_t time_ns, int64_t resident);

}  // namespace tachograph::blocks

// Which sampled blocks become rows, and what each row stands for.
//
// A block that was sampled stands for `weight` bytes of its like. Where there are more blocks than
// rows may be written, some stand for the others: those of one place (allocator, stack, thread) for
// just that place, so that its sum is kept exactly, as long as it is worth a row, and so is that of
// those which lived about as long, and give or take a row of each span among these; those of the
// places that are not share the remaining rows. Every block has the chance weight / step to be in,
// so whatever is summed up over rows (of a place, of a stretch of time, of those that lived longer)
// is as unbiased as the sample itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph::thinning {

struct Item {
    uint64_t place;
    uint32_t kin;   // of those of a place, which are alike in how long they lived
    uint32_t span;  // of the program, in which it was allocated
    double size;
    double weight;
    double mean;    // of the sample that it was drawn for; then of one that would be as unsure
    double answer;  // what it stands for now; 0: it is left out
    int64_t time_ns;
    uint32_t index;  // the caller's
};

// Bytes that a block of `size` stands for if it was sampled with `mean` (points.h): size over the
// chance that it holds a point, which is x - x^3 / 6 for x = size / mean up to 1, and 1 - (2 - x)^3
// / 6 up to 2; larger blocks hold one for sure.
double stands_for(double size, double mean);

// Leaves at most `rows` of the items in, the order of which it changes.
void thin(Item* items, size_t count, size_t rows, uint64_t* random);

// The same, in two parts: those that lived for long (kin of kLongKin on) have half of the rows for
// themselves if they need as many, the others the rest. What a place held at a moment is known by
// the former, which are few, and what passed through it by the latter; together, thousands that
// came and went would leave room for one in many of those that stayed.
inline constexpr uint32_t kLongKin = 6;
void thin_by_life(Item* items, size_t count, size_t rows, uint64_t* random);

// Puts first the largest `most` items of each of the `places` that are worth most in all, place by
// place; how many these are.
size_t largest_places(Item* items, size_t count, size_t places, size_t most);

}  // namespace tachograph::thinning

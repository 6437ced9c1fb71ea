// Rows of sampled blocks: what each says, and which of those that could have one get one.
#pragma once

#include "memory/block.h"
#include "memory/thinning.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::block_rows {

using blocks::Block;

double weight_of(const Block& what);
// Those that may stand for each other.
bool alike(const Block& one, const Block& other);
// Blocks of a place that lived for so long are alike: within a factor of 16. From 8 ms on it is
// thinning::kLongKin.
uint32_t kin_of(int64_t lived_ns);

bool write_block(uint32_t id, const Block& what, double weight, double mean, bool followed);
// As it was sampled.
bool write_sampled(uint32_t id, const Block& what, bool followed);
// `weight`: bytes that the block's row stands for.
void write_freed(uint32_t id, int64_t time_ns, uint32_t thread, double weight);
// Bytes for which the spool had no room are told as a loss.
void drop(double weight);

// How many rows may be written: so many a second, and some more to begin with and after a pause.
struct Allowance {
    static constexpr size_t kMostSpare = 60;
    double per_second;
    double most;
    double left;
    int64_t earned_ns = 0;

    // Half of what is there, so that the next second has some too; in the end all of it.
    size_t take(int64_t now_ns, bool all) {
        if (earned_ns != 0) left += per_second * 1e-9 * static_cast<double>(now_ns - earned_ns);
        earned_ns = now_ns;
        if (left > most) left = most;
        const double part = all ? left : left / 2;
        return static_cast<size_t>(part > per_second ? part : per_second);
    }
    // Rows that are not needed at the end.
    size_t spare() const {
        const auto rest = static_cast<size_t>(left);
        return rest < kMostSpare ? rest : kMostSpare;
    }
    void spend(size_t rows) {
        left -= static_cast<double>(rows);
        if (left < 0) left = 0;
    }
};

// The blocks among which is chosen: `most` at most. One thread at a time has them.
bool open(size_t most);
void begin(int64_t now_ns);
void forget();
thinning::Item* items();
void add_item(size_t* count, uint32_t index, const Block& what, double weight, uint32_t kin = 0);
// Leaves at most `rows` of them in; how many.
uint32_t thin(Allowance& allowance, size_t count, size_t rows);

}  // namespace tachograph::block_rows

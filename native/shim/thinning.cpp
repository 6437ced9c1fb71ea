#include "thinning.h"

#include "mixing.h"

#include <algorithm>

namespace tachograph::thinning {
namespace {

constexpr int kSquarings = 10;

// exp(-x) for x > 0, to 9 digits: not libm's, of which new versions would bind us to new systems.
double falling(double x) {
    const double y = x / (1 << kSquarings);
    double power = 1 - y * (1 - y / 2 * (1 - y / 3 * (1 - y / 4)));
    for (int i = 0; i < kSquarings; ++i) power *= power;
    return power;
}

// The weight from which on an item has a row of its own: the others share the rows that are left,
// one for each step of their weights. It falls from round to round, so ever more have a row of
// their own.
double step_of(const Item* items, size_t count, size_t rows) {
    double shared = 0;
    for (size_t i = 0; i < count; ++i) shared += items[i].weight;
    for (size_t own = 0;;) {
        const double step = shared / static_cast<double>(rows - own);
        size_t found = 0;
        shared = 0;
        for (size_t i = 0; i < count; ++i) {
            const bool large = items[i].weight >= step;
            found += large ? 1 : 0;
            shared += large ? 0 : items[i].weight;
        }
        if (found == own || found >= rows) return step;
        own = found;
    }
}

// Items in a row, one chosen for each `step` of their weights, from a random beginning on.
class Chooser {
  public:
    Chooser(double step, uint64_t* random) : step_(step), next_(uniform(random) * step) {}
    void pass(Item* item) {
        passed_ += item->weight;
        if (passed_ <= next_) return;
        item->answer = step_;
        next_ += step_;
    }

  private:
    double step_;
    double next_;
    double passed_ = 0;
};

}  // namespace

double stands_for(double size, double mean) {
    const double x = size / mean;
    if (x > 40) return size;
    // For small blocks 1 - exp(-x) would lose its digits.
    return x < 1e-3 ? mean + size / 2 + size * x / 12 : size / (1 - falling(x));
}

void thin(Item* items, size_t count, size_t rows, uint64_t* random) {
    for (size_t i = 0; i < count; ++i) items[i].answer = items[i].weight;
    if (count <= rows || rows == 0) return;
    const double step = step_of(items, count, rows);
    // Not std::sort, which moves stretches by memmove: that is the program's, and would be counted.
    const auto before = [](const Item& a, const Item& b) {
        return a.place != b.place ? a.place < b.place : a.time_ns < b.time_ns;
    };
    std::make_heap(items, items + count, before);
    std::sort_heap(items, items + count, before);
    Chooser shared(step, random);
    for (size_t first = 0, last = 0; first < count; first = last) {
        double sum = 0;
        for (last = first; last < count && items[last].place == items[first].place; ++last)
            if (items[last].weight < step) sum += items[last].weight;
        const auto own = static_cast<double>(static_cast<uint64_t>(sum / step));  // rows
        Chooser alone(own > 0 ? sum / own : sum, random);
        for (size_t i = first; i < last; ++i) {
            if (items[i].weight >= step) continue;
            items[i].answer = 0;
            (own > 0 ? alone : shared).pass(&items[i]);
            // As unsure as its place: there by the chance sum / step, for its own and for the
            // sample's.
            if (own == 0) items[i].mean += step - sum;
        }
    }
}

}  // namespace tachograph::thinning

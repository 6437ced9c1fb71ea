#include "memory/thinning.h"

#include "tachograph/mixing.h"

#include <algorithm>

namespace tachograph::thinning {
namespace {

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

// Items that have no row of their own: those of one kin share as many rows as they are worth, and
// kin that are worth none share them with the next.
void share_place(Item* first, Item* last, double step, uint64_t* random) {
    double left = 0;
    for (const Item* item = first; item < last; ++item)
        if (item->weight < step) left += item->weight;
    while (first < last) {
        double sum = 0;
        Item* end = first;
        // What remains behind it must be worth a row as well, or belongs to it.
        while (end < last && (sum < step || left < step || end->kin == end[-1].kin)) {
            if (end->weight < step) {
                sum += end->weight;
                left -= end->weight;
            }
            ++end;
        }
        const auto rows = static_cast<double>(static_cast<uint64_t>(sum / step));
        Chooser chooser(rows > 0 ? sum / rows : sum, random);
        for (; first < end; ++first) {
            if (first->weight >= step) continue;
            first->answer = 0;
            chooser.pass(first);
        }
    }
}

// Those of a place that is worth no row: they share with other places.
void share_all(Item* first, Item* last, double step, double sum, Chooser* shared) {
    for (; first < last; ++first) {
        if (first->weight >= step) continue;
        first->answer = 0;
        shared->pass(first);
        // As unsure as its place: there by the chance sum / step, for its own and for the sample's.
        first->mean += step - sum;
    }
}

}  // namespace

double stands_for(double size, double mean) {
    const double x = size / mean;
    if (x >= 2) return size;
    // The chance that none of the two or three stretches that it lies in has its point in it, for
    // each place of their borders.
    if (x <= 1) return mean / (1 - x * x / 6);
    const double rest = 2 - x;
    return size / (1 - rest * rest * rest / 6);
}

void thin(Item* items, size_t count, size_t rows, uint64_t* random) {
    for (size_t i = 0; i < count; ++i) items[i].answer = items[i].weight;
    if (count <= rows || rows == 0) return;
    const double step = step_of(items, count, rows);
    // Not std::sort, which moves stretches by memmove: that is the program's, and would be counted.
    const auto before = [](const Item& a, const Item& b) {
        if (a.place != b.place) return a.place < b.place;
        if (a.kin != b.kin) return a.kin < b.kin;
        return a.span != b.span ? a.span < b.span : a.time_ns < b.time_ns;
    };
    std::make_heap(items, items + count, before);
    std::sort_heap(items, items + count, before);
    Chooser shared(step, random);
    for (Item *first = items, *last = items; first < items + count; first = last) {
        double sum = 0;
        for (; last < items + count && last->place == first->place; ++last)
            if (last->weight < step) sum += last->weight;
        if (sum >= step)
            share_place(first, last, step, random);
        else
            share_all(first, last, step, sum, &shared);
    }
}

void thin_by_life(Item* items, size_t count, size_t rows, uint64_t* random) {
    constexpr size_t kRowsToDivide = 4;
    Item* const middle =
        std::partition(items, items + count, [](const Item& each) { return each.kin >= kLongKin; });
    const auto lived = static_cast<size_t>(middle - items);
    const size_t passed = count - lived;
    if (lived == 0 || passed == 0 || rows < kRowsToDivide) return thin(items, count, rows, random);
    const size_t not_needed = rows - std::min(rows, passed);
    const size_t of_lived = std::min(lived, std::max(rows / 2, not_needed));
    thin(items, lived, of_lived, random);
    thin(middle, passed, rows - of_lived, random);
}

size_t largest_places(Item* items, size_t count, size_t places, size_t most) {
    const auto by_place = [](const Item& a, const Item& b) {
        return a.place != b.place ? a.place < b.place : a.size > b.size;
    };
    std::make_heap(items, items + count, by_place);
    std::sort_heap(items, items + count, by_place);
    for (Item *first = items, *last = items; first < items + count; first = last) {
        double sum = 0;
        for (; last < items + count && last->place == first->place; ++last) sum += last->weight;
        size_t number = 0;
        for (Item* item = first; item < last; ++item)
            item->answer = number++ < most ? sum : 0;  // the rest of a place comes last
    }
    const auto by_sum = [](const Item& a, const Item& b) {
        return a.answer != b.answer ? a.answer > b.answer : a.place < b.place;
    };
    std::make_heap(items, items + count, by_sum);
    std::sort_heap(items, items + count, by_sum);
    size_t chosen = 0;
    for (size_t met = 0; chosen < count && items[chosen].answer > 0; ++chosen) {
        if (chosen == 0 || items[chosen].place != items[chosen - 1].place) ++met;
        if (met > places) break;
    }
    return chosen;
}

}  // namespace tachograph::thinning

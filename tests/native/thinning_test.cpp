// Leaving sampled blocks out without a bias, on populations that are known.
#include "memory/thinning.h"
#include "memory/points.h"

#include "check.h"
#include "tachograph/mixing.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#if !TG_THREAD_SANITIZER  // one thread computes

using namespace tachograph;
using thinning::Item;

namespace {

constexpr double kMean = 524288;

// Three places with much, forty with little, and blocks of all sizes. The index says which is
// which.
std::vector<Item> population() {
    std::vector<Item> items;
    uint64_t random = 11;
    for (uint32_t i = 0; i < 1000; ++i) {
        const uint64_t draw = next_random(&random);
        Item item{};
        item.place = draw % 10 < 6 ? draw % 3 : 3 + draw % 40;
        item.kin = item.place == 1 ? i % 3 / 2 : 0;
        item.span = item.place == 0 ? i % 4 / 3 : 0;  // they take turns, three to one
        item.time_ns = static_cast<int64_t>(i);
        item.size = draw % 50 == 0 ? 4e6 : static_cast<double>(32 << (draw >> 8) % 8);
        item.mean = kMean;
        item.weight = thinning::stands_for(item.size, kMean);
        item.index = i;
        items.push_back(item);
    }
    return items;
}

// Whether the item is counted, for sums over some of them.
using Count = bool (*)(const Item&);
constexpr Count kCounts[] = {
    [](const Item&) { return true; },
    [](const Item& item) { return item.place == 1; },
    [](const Item& item) { return item.place == 2 && item.time_ns < 300; },
    [](const Item& item) { return item.place == 0 && item.time_ns % 7 == 0; },
    [](const Item& item) { return item.place == 20; },
    [](const Item& item) { return item.place > 2 && item.time_ns > 700; },
    [](const Item& item) { return item.size > 1e6; },
    [](const Item& item) { return item.place == 1 && item.kin == 1; },
};

}  // namespace

// Blocks of one size among others, in a stream that begins anywhere: how often does one hold a
// point, and what do those that do stand for together? Within five standard errors.
TEST(thinning_weights_are_those_of_the_points) {
    constexpr int64_t kStretch = 1000;
    constexpr int kStreams = 200'000;
    uint64_t random = 17;
    for (const int64_t size : {1, 16, 300, 999, 1000, 1500, 1990, 2000, 7000}) {
        int held = 0;
        for (int stream = 0; stream < kStreams; ++stream) {
            Points points = first_points(&random, kStretch);
            // Another one before it, so that it begins behind a point that was passed.
            for (const int64_t block : {int64_t{1300}, size}) {
                points.next -= block;
                const bool holds = points.next < 0;
                if (holds) points = points_after(points, &random, kStretch);
                held += holds && block == size ? 1 : 0;
            }
        }
        const double chance =
            static_cast<double>(size) / thinning::stands_for(static_cast<double>(size), kStretch);
        const double error = std::sqrt(chance * (1 - chance) / kStreams);
        CHECK(std::abs(held / double{kStreams} - chance) <= 5 * error);
    }
}

// What is allocated in one go has as many points as stretches, give or take one.
TEST(thinning_points_are_one_in_each_stretch) {
    constexpr int64_t kStretch = 1000;
    uint64_t random = 19;
    Points points = first_points(&random, kStretch);
    for (int phase = 0; phase < 1000; ++phase) {
        int held = 0;
        for (int block = 0; block < 50 * kStretch / 8; ++block) {
            points.next -= 8;
            if (points.next >= 0) continue;
            ++held;
            points = points_after(points, &random, kStretch);
        }
        CHECK(held >= 49 && held <= 51);
    }
}

TEST(thinning_leaves_all_in_where_there_is_room) {
    std::vector<Item> items = population();
    uint64_t random = 1;
    thinning::thin(items.data(), items.size(), items.size(), &random);
    for (const Item& item : items) CHECK(item.answer == item.weight && item.mean == kMean);
}

// Each sum is right in the mean of many trials, within five standard errors; none has more rows
// than there is room for; places that are worth a row have their sum in every trial.
TEST(thinning_is_unbiased) {
    constexpr int kTrials = tests::rounds(4000);
    uint64_t random = 3;
    for (const size_t rows : {20, 60, 300}) {
        double sums[std::size(kCounts)] = {};
        double squares[std::size(kCounts)] = {};
        double truth[std::size(kCounts)] = {};
        for (int trial = 0; trial < kTrials; ++trial) {
            std::vector<Item> items = population();
            thinning::thin(items.data(), items.size(), rows, &random);
            double found[std::size(kCounts)] = {};
            size_t left = 0;
            for (const Item& item : items) {
                left += item.answer > 0 ? 1 : 0;
                CHECK(item.answer == 0 || item.answer >= item.weight - 1e-6);
                for (size_t which = 0; which < std::size(kCounts); ++which)
                    if (kCounts[which](item)) {
                        found[which] += item.answer;
                        if (trial == 0) truth[which] += item.weight;
                    }
            }
            CHECK(left <= rows && left + 1 + rows / 5 >= rows);
            CHECK(std::abs(found[1] / truth[1] - 1) < 1e-9);
            if (rows >= 60) CHECK(std::abs(found[7] / truth[7] - 1) < 1e-9);
            for (size_t which = 0; which < std::size(kCounts); ++which) {
                sums[which] += found[which];
                squares[which] += found[which] * found[which];
            }
        }
        for (size_t which = 0; which < std::size(kCounts); ++which) {
            const double mean = sums[which] / kTrials;
            const double variance = squares[which] / kTrials - mean * mean;
            const double error = std::sqrt(std::max(variance, 0.0) / kTrials);
            CHECK(std::abs(mean - truth[which]) <= 5 * error + 1e-9 * truth[which]);
        }
    }
}

// A few large blocks that stayed, among thousands of forms of one that grew and were each held for
// a moment: each of the former stands for itself, and the sum of the latter is what it was.
TEST(thinning_keeps_what_was_held_for_long) {
    uint64_t random = 7;
    for (int trial = 0; trial < tests::rounds(200); ++trial) {
        std::vector<Item> items;
        for (uint32_t i = 0; i < 3000; ++i) {
            Item item{};
            item.place = i % 300 == 0 ? 2 + i % 7 : 1;
            item.kin = i % 300 == 0 ? thinning::kLongKin + i % 2 : 3;
            item.time_ns = static_cast<int64_t>(i);
            item.size = item.weight = i % 300 == 0 ? 24e6 : 20e6;
            item.mean = kMean;
            item.index = i;
            items.push_back(item);
        }
        thinning::thin_by_life(items.data(), items.size(), 80, &random);
        double passed = 0;
        size_t rows = 0;
        for (const Item& item : items) {
            rows += item.answer > 0 ? 1 : 0;
            if (item.kin < thinning::kLongKin)
                passed += item.answer;
            else
                CHECK(item.answer == item.weight);
        }
        CHECK(rows <= 80);
        CHECK(std::abs(passed / (2990 * 20e6) - 1) < 1e-9);
    }
}

// Where there is little room, or all are of one kind, it is as without parts.
TEST(thinning_by_life_has_no_more_rows_than_there_is_room_for) {
    uint64_t random = 9;
    for (const size_t rows : {1, 3, 4, 5, 80, 999, 1000, 2000})
        for (const uint32_t every : {1, 2, 10, 1000, 5000}) {
            std::vector<Item> items = population();
            double truth = 0;
            double found = 0;
            for (Item& item : items) {
                item.kin = item.index % every == every - 1 ? thinning::kLongKin : 0;
                truth += item.weight;
            }
            thinning::thin_by_life(items.data(), items.size(), rows, &random);
            size_t left = 0;
            for (const Item& item : items) {
                left += item.answer > 0 ? 1 : 0;
                found += item.answer;
            }
            CHECK(left >= 1 && left <= rows);
            if (rows >= items.size()) CHECK(left == items.size() && std::abs(found - truth) < 1);
        }
}

// Spans that take turns in one place have what is theirs, give or take a row.
TEST(thinning_keeps_the_sum_of_each_span) {
    uint64_t random = 7;
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<Item> items = population();
        thinning::thin(items.data(), items.size(), 60, &random);
        for (const uint32_t span : {0u, 1u}) {
            double found = 0;
            double truth = 0;
            double row = 0;
            for (const Item& item : items) {
                if (item.place != 0 || item.span != span) continue;
                truth += item.weight;
                found += item.answer;
                if (item.answer > item.weight) row = std::max(row, item.answer);
            }
            CHECK(row > 0 && std::abs(found - truth) <= row);
        }
    }
}

// What a row says of its own uncertainty covers what thinning adds to it.
TEST(thinning_says_how_sure_it_is) {
    constexpr int kTrials = 4000;
    uint64_t random = 5;
    double squares = 0;
    double told = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<Item> items = population();
        thinning::thin(items.data(), items.size(), 30, &random);
        double found = 0;
        double truth = 0;
        for (const Item& item : items)
            if (item.place == 20) {
                truth += item.weight;
                found += item.answer;
                told += item.answer * item.size / std::expm1(item.size / item.mean);
            }
        squares += (found - truth) * (found - truth);
    }
    CHECK(told > 0.9 * squares && told < 1.3 * squares);
}

#endif

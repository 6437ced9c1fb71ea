// Another generation of the tables while threads work in the one before.
#include "stacks/generations.h"
#include "check.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/generation_turns.h"
#include "stacks/native_contexts.h"

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

using namespace tachograph;

namespace {

constexpr int64_t kLater = generation_turns::kLeastNs + 1;
constexpr contexts::Sizes kSmall{1u << 16, 1u << 16};

void open() {
    CHECK(spool::open(tests::folder, 64 << 20, 1) == 0 && spool::prepare_second() == 0);
    CHECK(contexts::open(kSmall) && native_contexts::open());
}

uint32_t fill(uint32_t nodes) {
    uint32_t last = kNone;
    for (uint32_t code = 0; code < nodes; ++code) last = contexts::intern_stack(kNone, code, 0);
    return last;
}

}  // namespace

TEST(generations_begin_when_a_table_is_nearly_full) {
    open();
    const uint32_t first = contexts::intern_stack(kNone, 7, 2);
    generation_turns::maintain(kLater, false);
    CHECK(contexts::intern_stack(kNone, 7, 2) == first);  // there is room: it stays
    fill(50'000);
    generation_turns::maintain(kLater, false);
    const uint32_t again = contexts::intern_stack(kNone, 7, 2);
    CHECK(again > first && again != kNone);  // no number is given twice
    CHECK(again >= 50'000);
    // As often as is needed, but not at once: rows of the one before may be on their way.
    for (int64_t round = 2; round < 2 + tests::rounds(10); ++round) {
        fill(50'000);
        const uint32_t present = contexts::intern_stack(kNone, 7, 2);
        generation_turns::maintain(round * kLater - kLater / 2, false);
        CHECK(contexts::intern_stack(kNone, 7, 2) == present);
        generation_turns::maintain(round * kLater, false);
        CHECK(contexts::intern_stack(kNone, 7, 2) > present);
    }
}

TEST(generations_begin_with_a_window) {
    open();
    int emit = 0;
    const uint32_t code = contexts::intern_code(5, &emit);
    CHECK(emit == 1);
    contexts::code_written(code, true);
    const uint32_t stack = contexts::intern_stack(kNone, code, 0);
    const uint32_t path = native_contexts::intern(0, {77, stack, 1});
    generation_turns::maintain(kLater, true);
    const uint32_t next = contexts::intern_code(5, &emit);
    CHECK(next > code && emit == 1);  // each generation has records of its own
    CHECK(contexts::intern_stack(kNone, next, 0) > stack);
    CHECK(native_contexts::intern(0, {77, stack, 1}) > path && path != 0);
}

// A sanitizer has memory of its own for each byte.
#if !TG_THREAD_SANITIZER && !defined(__SANITIZE_ADDRESS__)

namespace {

// Bytes of this process that are in memory and in no file.
size_t resident() {
    long pages = 0;
    long of_files = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld %ld", &pages, &of_files) == 2);
    fclose(file);
    return static_cast<size_t>(pages - of_files) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST(generations_take_little_memory_and_give_it_back) {
    CHECK(spool::open(tests::folder, 64 << 20, 1) == 0 && spool::prepare_second() == 0);
    CHECK(contexts::open() && native_contexts::open());
    const size_t before = resident();
    uint32_t code = 0;
    for (; !contexts::nearly_full(0); ++code) contexts::intern_stack(kNone, code, 0);
    CHECK(code > 700'000);
    CHECK(resident() - before < 20u << 20);
    generation_turns::maintain(kLater, false);
    generation_turns::maintain(kLater, false);
    CHECK(contexts::intern_stack(kNone, 0, 0) > code);
    CHECK(resident() - before < 1u << 20);
}
#endif

TEST(generations_wait_for_whoever_works_in_the_one_before) {
    open();
    std::atomic<int> step{0};
    std::thread worker([&] {
        size_t size = 0;
        void* scratch = contexts::borrow_scratch(&size);
        const uint32_t node = contexts::intern_stack(kNone, 1, 0);
        step.store(1);
        while (step.load() != 2) {
        }
        // Two generations would have begun since, and its table been emptied.
        CHECK(contexts::intern_stack(kNone, 1, 0) == node);
        contexts::return_scratch(scratch);
        step.store(3);
    });
    while (step.load() != 1) {
    }
    const uint32_t before = contexts::intern_stack(kNone, 1, 0);
    generation_turns::maintain(kLater, true);
    const uint32_t second = contexts::intern_stack(kNone, 1, 0);
    CHECK(second != before);
    generation_turns::maintain(2 * kLater, true);
    CHECK(contexts::intern_stack(kNone, 1, 0) == second);  // put off
    step.store(2);
    while (step.load() != 3) {
    }
    worker.join();
    generation_turns::maintain(3 * kLater, true);
    CHECK(contexts::intern_stack(kNone, 1, 0) > second);
}

TEST(generations_last_room_is_for_leaves) {
    open();
    uint32_t code = 0;
    while (contexts::intern_stack(kNone, code, 0) != kNone) ++code;
    CHECK(code > 60'000 && code < 65'536);
    uint32_t more = 0;
    while (contexts::intern_stack(kNone, code + more, 0, nullptr, true) != kNone) ++more;
    CHECK(more > 4'000 && code + more == 65'536);
}

TEST(generations_turn_under_walks) {
    constexpr uint32_t kThreads = 4;
    open();
    std::atomic<bool> done{false};
    std::atomic<uint64_t> walks{0};
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            uint32_t seed = thread * 7919 + 1;
            while (!done.load(std::memory_order_relaxed)) {
                size_t size = 0;
                void* scratch = contexts::borrow_scratch(&size);
                if (!scratch) continue;
                uint32_t path[10];
                uint32_t node = kNone;
                const uint32_t begin = seed;
                for (uint32_t& each : path) {
                    seed = seed * 1664525u + 1013904223u;
                    each = node = contexts::intern_stack(node, seed >> 31, 2);
                    CHECK(node != kNone);
                }
                // The same path has the same nodes, whatever begins meanwhile.
                node = kNone;
                uint32_t again = begin;
                for (const uint32_t each : path) {
                    again = again * 1664525u + 1013904223u;
                    node = contexts::intern_stack(node, again >> 31, 2);
                    CHECK(node == each);
                }
                contexts::return_scratch(scratch);
                walks.fetch_add(1, std::memory_order_relaxed);
            }
        });
    int64_t now = 0;
    for (int round = 0; round < 200; ++round) {
        const uint64_t before = walks.load();
        while (walks.load() < before + 20) std::this_thread::yield();
        CHECK(spool::maintain() == 0);
        generation_turns::maintain(now += kLater, true);
    }
    done.store(true);
    for (std::thread& thread : threads) thread.join();
}

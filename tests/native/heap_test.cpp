// Counting, sampling and following of blocks. The blocks here are addresses that are not in use.
#include "memory/heap.h"

#include "base/kernel.h"
#include "check.h"
#include "copies/copies.h"
#include "memory/footprint.h"
#include "memory/mappings.h"
#include "process/lifecycle.h"
#include "set_settings.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

#include <unistd.h>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

using namespace tachograph;

namespace {

constexpr uint64_t kThreshold = 1'000'003;

const tg_walker kWalker{
    .walk_self =
        [](tg_walk* out) {
            out->stack = contexts::intern_stack(kNone, 1, 2);
            out->state = TG_STACK_WHOLE;
        },
    .walk_other = [](pid_t, void**, int (*)(void*), void*, tg_walk*) {},
    .is_gil = [](const void*, const void*) { return 0; },
    .position = [](tg_position*) { return 0; },
    .thread_name = [](char*, size_t) -> size_t { return 0; },
    .after_fork = [] {},
    .in_forked_child = [] { return 0; },
    .evaluation_loop = reinterpret_cast<const void*>(&copies::mean_of_independent),
    .calls_turn = nullptr,
    .calls_sampled = nullptr,
    .calls_flush = nullptr,
    .progress = nullptr,
    .is_header = nullptr,
    .census = nullptr,
    .counts_threads = 0,
};

void arm(const tg_walker& walker = kWalker, uint64_t threshold = kThreshold) {
    char error[200] = {};
    tests::set_settings(tests::folder,
                        "interval_ns=10000000,segment=1048576,memory=1,threshold=%llu,children=0",
                        static_cast<unsigned long long>(threshold));
    if (lifecycle::arm(settings::options(), walker, error, sizeof error) != 0) puts(error);
    CHECK(recording());
    heap::begin(0, true);
}

const void* address(uint64_t number) {
    return reinterpret_cast<const void*>(0x10'0000'0000 + 16 * number);
}

uint64_t lost(Loss loss) {
    return __atomic_load_n(&spool::control()->losses[static_cast<uint32_t>(loss)],
                           __ATOMIC_RELAXED);
}

void take(uint64_t number, size_t size) {
    heap::took(heap::t_local, address(number), size, size, nullptr);
}

void give(uint64_t number, size_t size) {
    heap::gives(address(number));
    heap::gave(heap::t_local, size);
}

}  // namespace

TEST(heap_knows_the_first_and_the_last_block_of_a_call) {
    static const char memory[100][1024] = {};
    heap::Recent recent;
    CHECK(recent.none() && !recent.hold(memory[0]));
    for (const auto& block : memory) recent.add(block);
    CHECK(!recent.none());
    for (const int known : {0, 1, 2, 3, 96, 97, 98, 99}) CHECK(recent.hold(memory[known] + 32));
    CHECK(!recent.hold(memory[50]) && !recent.hold(memory[0] + 500));
    // What else there is to be looked at does not count as a block.
    recent.count = heap::Recent::kLook;
    CHECK(!recent.none() && !recent.hold(memory[0]));
    recent.add(memory[5]);
    CHECK(recent.hold(memory[5]) && !recent.hold(memory[0]));
}

// Copies of one size hold points as often as independent gaps of the mean that rows tell would.
TEST(heap_copies_are_sampled_as_their_rows_say) {
    constexpr int kStreams = 100'000;  // each begins anywhere: copies of one size may keep step
    constexpr int kCopies = 10;
    constexpr int64_t kMean = 1 << 19;
    uint64_t random = 7;
    for (const double share : {0.002, 0.3, 0.8, 1.0, 1.3, 1.9}) {
        const auto size = static_cast<int64_t>(share * kMean);
        int held = 0;
        for (int stream = 0; stream < kStreams; ++stream) {
            Points points = first_points(&random, kMean);
            for (int i = 0; i < kCopies; ++i) {
                points.next -= size;
                if (points.next >= 0) continue;
                ++held;
                points = points_after(points, &random, kMean);
            }
        }
        const auto told = static_cast<double>(copies::mean_of_independent(size, kMean));
        const double chance = 1 - std::exp(-static_cast<double>(size) / told);
        // At most: as if all copies of a stream held a point or none did.
        const double error = std::sqrt(chance * (1 - chance) / kStreams);
        CHECK(std::abs(held / double{kStreams * kCopies} - chance) < 5 * error);
    }
    CHECK(copies::mean_of_independent(2 * kMean, kMean) == 1);
    CHECK(copies::mean_of_independent(int64_t{1} << 40, kMean) == 1);
    CHECK(copies::mean_of_independent(0, kMean) == 1);
}

// Four threads allocate, each frees what another one has allocated; what was counted is printed.
TEST(heap_counters_balance) {
    arm();
    constexpr int kThreads = 4;
    constexpr uint64_t kBlocks = 20'000;
    std::atomic<int64_t> allocated{0};
    std::atomic<int64_t> freed{0};
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            lifecycle::begin_thread("worker", 6);
            for (uint64_t i = 0; i < kBlocks; ++i) {
                const size_t size = 16 + 16 * (i % 97);
                take(static_cast<uint64_t>(t) * kBlocks + i, size);
                allocated += static_cast<int64_t>(size);
            }
            ++ready;
            while (ready != kThreads) std::this_thread::yield();
            const auto other = static_cast<uint64_t>((t + 1) % kThreads);
            for (uint64_t i = 0; i < kBlocks; i += 2) {
                const size_t size = 16 + 16 * (i % 97);
                give(other * kBlocks + i, size);
                freed += static_cast<int64_t>(size);
            }
        });
    for (std::thread& thread : threads) thread.join();
    printf("%lld %lld\n", static_cast<long long>(allocated), static_cast<long long>(freed));
}

// Small blocks that come and go, and blocks of all sizes that stay, more than there is room for:
// what a reader makes of the rows must be what there was, within the standard error.
TEST(heap_estimates_are_unbiased) {
    arm();
    int64_t allocated = 0;
    int64_t alive = 0;
    for (uint64_t i = 0; i < 1'000'000; ++i) {
        take(1, 512);
        give(1, 512);
        allocated += 512;
        if (i % 500 == 0) {
            const size_t size = 1024u << (i / 500 % 8);
            take(100 + i, size);
            allocated += static_cast<int64_t>(size);
            alive += static_cast<int64_t>(size);
        }
    }
    printf("%lld %lld\n", static_cast<long long>(allocated), static_cast<long long>(alive));
}

constexpr int64_t kLongWalkNs = 1'000'000;
int g_long_walks = 0;

// As of a very deep stack.
void walk_for_long(tg_walk* out) {
    const int64_t began = kernel::own_cpu_ns();
    while (kernel::own_cpu_ns() - began < kLongWalkNs) {
    }
    ++g_long_walks;
    kWalker.walk_self(out);
}

// The time of walks is what is limited, and it is told. What a reader makes of the blocks stays
// true.
TEST(heap_long_walks_are_few) {
    tg_walker walker = kWalker;
    walker.walk_self = walk_for_long;
    arm(walker, uint64_t{1} << 40);  // no rows of the footprint, which have walks of their own
    constexpr uint64_t kBlocks = 400'000;
    constexpr size_t kSize = 2048;
    const int walked_before = g_long_walks;
    for (uint64_t i = 0; i < kBlocks; ++i) take(i, kSize);
    const int walks = g_long_walks - walked_before;
    // With a sample in each 512 KiB there are 1,563.
    CHECK(walks > 20 && walks < 300);
    const int64_t cost = sources::cost("memory").handlers_ns;
    CHECK(cost >= 8 * kLongWalkNs && cost < 4 * walks * kLongWalkNs);
    CHECK(spool::control()->handler_cpu_ns >= cost);
    const auto all = static_cast<long long>(kBlocks * kSize);
    printf("%lld %lld\n", all, all);
}

// Where Python is: a line has a position and a stack of its own.
thread_local int32_t g_line = 0;

tg_walker walker_of_lines() {
    tg_walker walker = kWalker;
    walker.walk_self = [](tg_walk* out) {
        out->stack = contexts::intern_stack(kNone, 1, static_cast<uint32_t>(g_line));
        out->state = TG_STACK_WHOLE;
    };
    walker.position = [](tg_position* here) {
        *here = {&g_line, g_line};
        return 1;
    };
    return walker;
}

// Blocks that realloc moves, and what they add up to.
struct Moving {
    uint64_t number;
    uint64_t places = 2;  // it goes from one to the next
    size_t size = 0;
    uint64_t moves = 0;
    int64_t allocated = 0;

    uint64_t at() const { return number * 100 + moves % places; }
    void to(size_t now, int32_t line) {
        g_line = line;
        const int64_t before = counted();
        if (size == 0) {
            take(at(), now);
        } else {
            const void* block = address(at());
            const uint32_t followed = blocks::maybe_followed(block) ? blocks::claim(block) : kNone;
            ++moves;
            heap::moved(heap::t_local, followed, block, size, address(at()), now, now, nullptr);
        }
        allocated += counted() - before;
        size = now;
    }
    static int64_t counted() { return heap::t_local.counters->flows[TG_DOMAIN_NATIVE].allocated; }
};

constexpr size_t kMiB = 1 << 20;
constexpr int32_t kGrows = 3;
constexpr int32_t kEnds = 4;

void finish_growing(std::initializer_list<const Moving*> blocks) {
    blocks::write(kernel::monotonic_ns(), blocks::Rows::last);
    int64_t allocated = 0;
    int64_t alive = 0;
    for (const Moving* each : blocks) {
        allocated += each->allocated;
        alive += static_cast<int64_t>(each->size);
    }
    printf("%lld %lld %u\n", static_cast<long long>(allocated), static_cast<long long>(alive),
           contexts::intern_stack(kNone, 1, kEnds));
}

// Blocks that grow go on as the same blocks, however much is allocated on the way: in the end all
// that they have is there, on the line that made them as large as they are.
TEST(heap_grows_in_many_small_steps) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving block{1};
    for (size_t i = 1; i < 50'000; ++i) block.to(i * 2048, kGrows);
    block.to(100 * kMiB, kEnds);
    finish_growing({&block});
}

TEST(heap_grows_in_few_large_steps) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving block{1};
    for (size_t i = 1; i < 10; ++i) block.to(i * 10 * kMiB, kGrows);
    block.to(100 * kMiB, kEnds);
    finish_growing({&block});
}

TEST(heap_grows_where_it_is) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving block{1, 1};
    for (size_t i = 1; i < 50'000; ++i) block.to(i * 2048, kGrows);
    block.to(100 * kMiB, kEnds);
    finish_growing({&block});
}

// Where it is, it grows by what came to it: small steps are none of them a new block.
TEST(heap_grows_in_place_by_little) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving block{1, 1};
    block.to(10 * kMiB, kGrows);
    for (size_t i = 1; i < 50'000; ++i) block.to(10 * kMiB + i * 16, kGrows);
    block.to(20 * kMiB, kEnds);
    CHECK(block.allocated < int64_t{20'000} * int64_t{kMiB});
    finish_growing({&block});
}

TEST(heap_grows_and_shrinks_by_turns) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving block{1};
    for (size_t i = 0; i < 30'000; ++i) block.to(i % 2 == 0 ? 80 * kMiB : 5 * kMiB, kGrows);
    block.to(100 * kMiB, kEnds);
    finish_growing({&block});
}

TEST(heap_two_grow_by_turns) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving one{1};
    Moving other{2};
    for (size_t i = 1; i < 30'000; ++i) {
        one.to(i * 2048, kGrows);
        other.to(i * 1024, kGrows + 7);
    }
    one.to(60 * kMiB, kEnds);
    other.to(30 * kMiB, kEnds);
    finish_growing({&one, &other});
}

TEST(heap_grows_in_threads) {
    arm(walker_of_lines(), uint64_t{1} << 50);
    Moving blocks[4] = {{1}, {2}, {3}, {4}};
    std::vector<std::thread> threads;
    for (Moving& block : blocks)
        threads.emplace_back([&block] {
            lifecycle::begin_thread("worker", 6);
            for (size_t i = 1; i < 10'000; ++i) block.to(i * 4096, kGrows);
            block.to(50 * kMiB, kEnds);
        });
    for (std::thread& thread : threads) thread.join();
    finish_growing({&blocks[0], &blocks[1], &blocks[2], &blocks[3]});
}

// At a window's end as well the rows leave room in the table, or later blocks could not be
// followed.
TEST(heap_windows_leave_room_for_blocks) {
    arm(kWalker, uint64_t{1} << 50);
    constexpr int64_t kSecond = 1'000'000'000;
    constexpr size_t kSize = 64 << 10;
    int64_t now = kernel::monotonic_ns();
    uint64_t number = 0;
    for (int window = 0; window < 1500; ++window, now += 10 * kSecond) {
        for (int i = 0; i < 200; ++i) {
            blocks::Block what{};
            what.time_ns = now;
            what.size = kSize;
            what.mean = 1 << 19;
            what.thread = kNone;
            what.stack = static_cast<uint32_t>(i);
            blocks::follow(address(++number * 7919), what);
        }
        blocks::write(now + kSecond, blocks::Rows::window);
    }
    CHECK(blocks::filling() < 600);
}

// A table's entries that are in use lie close together, so its memory follows how many blocks are
// followed at a time, and not how many there ever were.
TEST(heap_tables_take_what_they_need) {
    arm();
    own_memory::look();
    const uint64_t before = __atomic_load_n(&spool::control()->own_bytes, __ATOMIC_RELAXED);
    const uint64_t blocks = uint64_t{1} << 17;
    for (uint64_t i = 0; i < blocks; ++i) {
        blocks::Block what{};
        what.time_ns = 1;  // long ago
        what.size = 1000;
        what.mean = 4096;
        what.thread = what.stack = kNone;
        blocks::follow(address(i * 7919), what);
        blocks::died(address(i * 7919));
        if (i % 500 == 0) blocks::write(kernel::monotonic_ns(), blocks::Rows::old);
    }
    own_memory::look();
    // The places (320 KiB), the filter and a new segment or two, but for all that no megabyte more.
    const uint64_t after = __atomic_load_n(&spool::control()->own_bytes, __ATOMIC_RELAXED);
    CHECK(after - before < 3'500'000);
}

// Blocks die while the recorder's own thread writes those that have lived long enough.
TEST(heap_blocks_die_while_they_are_written) {
    arm();
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t)
        threads.emplace_back([t, &over] {
            lifecycle::begin_thread("worker", 6);
            for (uint64_t i = 0; !over; ++i) {
                const void* block = address(t * 1000 + i % 500);
                blocks::Block what{};
                what.time_ns = kernel::monotonic_ns();
                what.size = 1000;
                what.mean = 4096;
                what.stack = kNone;
                blocks::follow(block, what);
                CHECK(blocks::maybe_followed(block));
                if (i % 3 == 0) std::this_thread::yield();
                blocks::died(block);
            }
        });
    uint32_t written = 0;
    for (int round = 0; round < 200 || (written < 300 && round < 100'000); ++round) {
        written += blocks::write(kernel::monotonic_ns(), blocks::Rows::last);
        kernel::call(SYS_sched_yield);
    }
    over = true;
    for (std::thread& thread : threads) thread.join();
    for (uint64_t i = 0; i < 3000; ++i) CHECK(!blocks::maybe_followed(address(i)));
    blocks::write(kernel::monotonic_ns(), blocks::Rows::last);
    CHECK(blocks::filling() == 0);
}

// What is not in the log yet is in its table, and nothing else is: also where the table is too
// small.
TEST(heap_pending_blocks_have_places_in_the_spool) {
    arm();
    const int64_t later = kernel::monotonic_ns() + 3'600'000'000'000;  // young for all the test
    const auto follow = [&](uint64_t number) {
        blocks::Block what{};
        what.time_ns = later;
        what.size = 1000;
        what.mean = 4096;
        what.thread = what.stack = kNone;
        blocks::follow(address(number), what);
    };
    const auto places = [] {
        uint32_t used = 0;
        for (uint32_t i = 0; i < kPendingPlaces; ++i)
            used += spool::pending_blocks()[i].header != 0 ? 1 : 0;
        return used;
    };
    for (uint64_t i = 0; i < 100; ++i) follow(i);
    CHECK(places() == 100 && spool::control()->pending_unkept == 0);
    for (uint64_t i = 0; i < 40; ++i) blocks::died(address(i));
    CHECK(places() == 60);
    for (uint64_t i = 100; i < 100 + kPendingPlaces; ++i) follow(i);
    const uint64_t losses = lost(Loss::blocks_unfollowed);
    CHECK(spool::control()->pending_unkept >= 60 - losses);
    CHECK(places() + spool::control()->pending_unkept == 60 + kPendingPlaces - losses);
    blocks::write(kernel::monotonic_ns(), blocks::Rows::last);
    CHECK(places() == 0 && spool::control()->pending_unkept == 0);
}

TEST(heap_a_failed_move_keeps_the_block) {
    CHECK(blocks::open());
    blocks::Block what{};
    blocks::follow(address(5), what);
    const uint32_t claimed = blocks::claim(address(5));
    CHECK(claimed != kNone && !blocks::maybe_followed(address(5)));
    CHECK(blocks::claim(address(5)) == kNone);
    blocks::restore(claimed, address(5));
    CHECK(blocks::maybe_followed(address(5)) && blocks::claim(address(5)) == claimed);
}

TEST(heap_mappings_are_cut_where_they_are) {
    constexpr uintptr_t kBase = 0x7000'0000'0000;
    constexpr size_t kPage = 4096;
    CHECK(mappings::add(kBase, 10 * kPage).mapped == 10 * kPage);
    CHECK(mappings::holds(kBase, 10 * kPage) && !mappings::holds(kBase, 11 * kPage));
    // a hole in the middle, then all of it: only what is left is gone
    CHECK(mappings::remove(kBase + 3 * kPage, 2 * kPage).unmapped == 2 * kPage);
    CHECK(!mappings::holds(kBase, 4 * kPage) && mappings::holds(kBase + 5 * kPage, 5 * kPage));
    CHECK(mappings::remove(kBase, 100 * kPage).unmapped == 8 * kPage);
    CHECK(mappings::remove(kBase, 100 * kPage).unmapped == 0);
    // over another one, as MAP_FIXED does
    mappings::add(kBase, 4 * kPage);
    const mappings::Change over = mappings::add(kBase + 2 * kPage, 4 * kPage);
    CHECK(over.mapped == 4 * kPage && over.unmapped == 2 * kPage);
    CHECK(mappings::remove(kBase, 6 * kPage).unmapped == 6 * kPage);
    // thousands, taken away in another order
    for (uintptr_t i = 0; i < 8000; ++i) mappings::add(kBase + 2 * i * kPage, kPage);
    size_t gone = 0;
    for (uintptr_t i = 0; i < 8000; ++i)
        gone += mappings::remove(kBase + 2 * (i * 7919 % 8000) * kPage, kPage).unmapped;
    CHECK(gone == 8000 * kPage);
}

namespace {

// Until nothing has room: the helper makes another segment when it looks again.
void fill_spool() {
    constexpr size_t kSizes[] = {128 << 10, 1024, 16};
    for (const size_t size : kSizes)
        for (;;) {
            const spool::Ticket ticket = spool::reserve(static_cast<Kind>(200), size);
            if (!ticket.record) break;
            spool::commit(ticket);
        }
}

}  // namespace

// Rows that find no room: of blocks their bytes are told, of the counters the next row has all.
TEST(heap_bytes_without_room_are_told) {
    arm(kWalker, uint64_t{1} << 50);
    constexpr size_t kSize = 4 << 20;
    constexpr uint64_t kBlocks = 20;
    for (uint64_t i = 0; i < kBlocks; ++i) take(i, kSize);
    // So often until it was in time before the helper.
    const auto without_room = [](auto act, auto met) {
        do {
            fill_spool();
            act();
        } while (!met());
    };
    const auto write = [](blocks::Rows which) { blocks::write(kernel::monotonic_ns(), which); };
    const auto lost_bytes = [] { return lost(Loss::block_bytes_dropped); };
    // Blocks that live on are tried again.
    fill_spool();
    write(blocks::Rows::last);
    CHECK(lost_bytes() == 0);
    const auto drops = [](auto act) {
        const uint64_t before = lost(Loss::records_dropped);
        act();
        return lost(Loss::records_dropped) > before;
    };
    // Rows of blocks that have died.
    uint64_t released = 0;
    while (drops([&] { write(blocks::Rows::last); })) usleep(1000);
    CHECK(lost_bytes() == 0);
    without_room([&] { give(released++, kSize); }, [&] { return lost_bytes() > 0; });
    const uint64_t deaths = lost_bytes();
    // Rows of the counters.
    bool dropped = false;
    without_room([&] { dropped = drops([] { footprint::mark(); }); }, [&] { return dropped; });
    // Rows of blocks at the end.
    uint64_t more = 0;
    without_room(
        [&] {
            take(1000 + more++, kSize);
            write(blocks::Rows::end);
        },
        [&] { return lost_bytes() > deaths; });
    printf("%llu %llu %llu %llu\n", static_cast<unsigned long long>((kBlocks + more) * kSize),
           static_cast<unsigned long long>(released * kSize),
           static_cast<unsigned long long>(deaths),
           static_cast<unsigned long long>(lost_bytes() - deaths));
}

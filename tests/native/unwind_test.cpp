// The unwinder's parts, and what it does where a path cannot be had. Paths through real code are
// judged by test_unwinder.py.
#include "base/fault.h"
#include "base/process_maps.h"
#include "check.h"
#include "stacks/own_stack.h"
#include "unwind/calls.h"
#include "unwind/images.h"
#include "unwind/last_path.h"
#include "unwind/rule_cache.h"
#include "unwind/rules.h"
#include "unwind/unwinder.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstring>
#include <initializer_list>

using namespace tachograph;
using namespace tachograph::unwind;

namespace {

constexpr uint32_t kRoom = 256;

struct Found {
    Path path = Path::unrecorded;
    uint32_t count = 0;
    bool unknown = false;
    Frame frames[kRoom];
};

char g_buffer[64 * 1024];

bool read_images() {
    if (!images::begin()) return false;
    process_maps::each(
        g_buffer, sizeof g_buffer,
        [](const process_maps::Mapping& mapping, void*) {
            if (mapping.executable) images::add(mapping);
        },
        nullptr);
    images::publish();
    return true;
}

void prepare() {
    fault::install();
    CHECK(open() && read_images());
}

__attribute__((noinline)) void walk_here(Found* found, uint32_t room = kRoom) {
    ucontext_t context;
    CHECK(getcontext(&context) == 0);
    found->path = walk(registers_of(context), found->frames, room, &found->count, &found->unknown);
}

__attribute__((noinline)) int deeper(int levels, Found* found, uint32_t room) {
    if (levels == 0) {
        walk_here(found, room);
        return 0;
    }
    volatile int inner = deeper(levels - 1, found, room);  // a call, whatever the optimiser thinks
    return inner + 1;
}

// So that nothing of earlier calls is found in place of a frame.
__attribute__((noinline)) void clear_stack() {
    volatile char room[64 * 1024];
    for (volatile char& each : room) each = 0;
}

// Code that finds its frame by the frame pointer. `found` is by the program counter and the stack
// pointer alone, all that is known of a waiting thread; `known` is by the frame pointer as well.
__attribute__((noinline, optimize("no-omit-frame-pointer"))) int framed(int levels, Found* found,
                                                                        Found* known) {
    if (levels == 0) {
        uint64_t pc;
        uint64_t sp;
        arch::keep_place(&pc, &sp);
        Registers start;
        start.set(kPc, pc);
        start.set(kStack, sp);
        found->path = walk(start, found->frames, kRoom, &found->count, &found->unknown);
        start.set(kFrame, reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
        known->path = walk(start, known->frames, kRoom, &known->count, &known->unknown);
        return 0;
    }
    volatile int inner = framed(levels - 1, found, known);
    return inner + 1;
}

// A thread that has something on its stack and waits in a call: in code with frame pointers, and in
// code without.
struct Waiting {
    std::atomic<uint64_t> address{0};  // of what it has there
    std::atomic<bool> done{false};
};

#define WAITING_CODE(name, option)                                                            \
    __attribute__((noinline, optimize("O2", option), no_sanitize_address)) void name##_wait(  \
        Waiting* waiting) {                                                                   \
        while (!waiting->done.load()) sched_yield();                                          \
    }                                                                                         \
    __attribute__((noinline, optimize("O2", option), no_sanitize_address)) void* name##_hold( \
        void* argument) {                                                                     \
        auto* waiting = static_cast<Waiting*>(argument);                                      \
        volatile uint64_t held[4] = {1, 2, 3, 4};                                             \
        waiting->address.store(reinterpret_cast<uint64_t>(&held[1]));                         \
        name##_wait(waiting);                                                                 \
        return held[1] == 2 ? nullptr : argument;                                             \
    }
WAITING_CODE(plain, "omit-frame-pointer")
WAITING_CODE(framed, "no-omit-frame-pointer")

void look_around(void* (*hold)(void*)) {
    prepare();
    Waiting waiting;
    pthread_t thread;
    CHECK(pthread_create(&thread, nullptr, hold, &waiting) == 0);
    while (waiting.address.load() == 0) sched_yield();
    const uint64_t held = waiting.address.load();
    Found found;
    // It is about to be in the call, and then always is.
    bool whole = false;
    for (int look = 0; look < 1000 && !whole; ++look) {
        whole = walk_around(held, found.frames, kRoom, &found.count);
        sched_yield();
    }
    CHECK(whole && found.count >= 3);
    const uint32_t holder = found.frames[0].cfa <= held ? 1 : 0;
    CHECK(found.frames[holder].sp <= held && held < found.frames[holder].cfa);
    waiting.done.store(true);
    void* result = &waiting;
    CHECK(pthread_join(thread, &result) == 0 && result == nullptr);
}

}  // namespace

TEST(unwind_rules_pack) {
    Rule rule;
    rule.step = Step::deref;
    rule.base = kFrame;
    rule.displacement = -24;
    rule.offset = -8;
    rule.frame = {Saved::at_frame, 0};
    rule.other = {Saved::at_cfa, -56};
    rule.after_call = true;
    rule.pushed = kMostPushed;
    Rule back = unpack(pack(rule));
    CHECK(back.step == Step::deref && back.base == kFrame && back.after_call && !back.switches);
    CHECK(back.displacement == -24 && back.offset == -8);
    CHECK(back.frame.where == Saved::at_frame && back.frame.offset == 0);
    CHECK(back.other.where == Saved::at_cfa && back.other.offset == -56);
    CHECK(back.pushed == kMostPushed);

    rule = {};
    rule.step = Step::offset;
    rule.base = 15;
    rule.offset = 3 << 20;
    rule.switches = true;
    back = unpack(pack(rule));
    CHECK(back.step == Step::offset && back.base == 15 && back.offset == 3 << 20);
    CHECK(back.frame.where == Saved::same && !back.after_call && back.switches);
    CHECK(back.pushed == 0);

    // Below large variables, both are known if they lie together.
    rule.frame = {Saved::at_cfa, -3 << 20};
    rule.other = {Saved::at_cfa, (-3 << 20) + 8};
    back = unpack(pack(rule));
    CHECK(back.frame.where == Saved::at_cfa && back.frame.offset == -3 << 20);
    CHECK(back.other.where == Saved::at_cfa && back.other.offset == (-3 << 20) + 8);
    CHECK(back.offset == 3 << 20 && back.switches && back.pushed == 0);
    rule.frame = {Saved::unknown, 0};

    // What does not fit is not known, instead of another thing.
    rule.other = {Saved::at_cfa, -1 << 20};
    CHECK(unpack(pack(rule)).other.where == Saved::unknown);
    CHECK(unpack(pack(rule)).frame.where == Saved::unknown);
    rule.offset = 1 << 24;
    CHECK(unpack(pack(rule)).step == Step::none);
}

#if defined(__x86_64__)
TEST(unwind_calls_are_recognised) {
    const auto ends = [](std::initializer_list<int> bytes, uint64_t* target) {
        static uint8_t code[32];
        memset(code, 0x90, sizeof code);
        size_t at = 16 - bytes.size();
        for (const int byte : bytes) code[at++] = static_cast<uint8_t>(byte);
        const bool found = calls::end_at(reinterpret_cast<uint64_t>(code + 16), target);
        if (*target != 0) *target -= reinterpret_cast<uint64_t>(code + 16);
        return found;
    };
    uint64_t target = 0;
    CHECK(ends({0xE8, 0x10, 0, 0, 0}, &target) && target == 0x10);
    CHECK(ends({0xFF, 0xD0}, &target) && target == 0);           // call *%rax
    CHECK(ends({0x41, 0xFF, 0xD2}, &target));                    // call *%r10
    CHECK(ends({0xFF, 0x50, 0x18}, &target));                    // call *0x18(%rax)
    CHECK(ends({0xFF, 0x90, 0x18, 1, 0, 0}, &target));           // call *0x118(%rax)
    CHECK(ends({0xFF, 0x15, 0x18, 1, 0, 0}, &target));           // call *0x118(%rip)
    CHECK(ends({0xFF, 0x54, 0x24, 0x08}, &target));              // call *8(%rsp)
    CHECK(ends({0x42, 0xFF, 0x94, 0xE8, 0, 1, 0, 0}, &target));  // call *0x100(%rax,%r13,8)
    CHECK(!ends({0x90, 0x90}, &target) && !ends({0xFF, 0xE0}, &target));  // a jump
    CHECK(!calls::end_at(64, &target));
}
#else
TEST(unwind_calls_are_recognised) {
    const auto ends = [](uint32_t instruction, uint64_t* target) {
        static uint32_t code[2];
        code[0] = instruction;
        const bool found = calls::end_at(reinterpret_cast<uint64_t>(code + 1), target);
        if (*target != 0) *target -= reinterpret_cast<uint64_t>(code);
        return found;
    };
    uint64_t target = 0;
    CHECK(ends(0x94000004, &target) && target == 0x10);               // bl .+16
    CHECK(ends(0x97FFFFFF, &target) && target == ~uint64_t{3});       // bl .-4
    CHECK(ends(0xD63F0100, &target) && target == 0);                  // blr x8
    CHECK(ends(0xD63F081F, &target) && ends(0xD73F0909, &target));    // blraaz x0; blraa x8, x9
    CHECK(ends(0xD63F0C1F, &target) && ends(0xD73F0D09, &target));    // blrabz x0; blrab x8, x9
    CHECK(!ends(0xD503201F, &target) && !ends(0x14000004, &target));  // nop; b .+16
    CHECK(!ends(0xD61F0100, &target) && !ends(0xD65F03C0, &target));  // br x8; ret
    CHECK(!calls::end_at(64, &target) && !calls::end_at(66, &target));
}
#endif

// Threads write the same places at once: a rule that is found is that of its key.
TEST(unwind_cache_never_mixes_rules) {
    CHECK(rule_cache::open());
    pthread_t threads[4];
    for (size_t i = 0; i < 4; ++i)
        CHECK(pthread_create(
                  &threads[i], nullptr,
                  [](void* first) -> void* {
                      auto number = reinterpret_cast<uint64_t>(first);
                      for (int round = 0; round < 200'000; ++round) {
                          number = number * 6364136223846793005ull + 1442695040888963407ull;
                          const rule_cache::Key key{number >> 40, (number & 1) != 0, 3};
                          const uint64_t own = key.address * 8 + (key.exact ? 1 : 0);
                          uint64_t rule = 0;
                          if (rule_cache::find(key, &rule)) CHECK(rule == own);
                          rule_cache::keep(key, own);
                          const rule_cache::Key other{key.address, key.exact, 4};
                          CHECK(!rule_cache::find(other, &rule));
                      }
                      return nullptr;
                  },
                  reinterpret_cast<void*>(i + 1)) == 0);
    for (const pthread_t thread : threads) CHECK(pthread_join(thread, nullptr) == 0);
}

// A walk over these addresses, each of which has itself as its rule; how many the last walk knew.
uint32_t known_of(std::initializer_list<uint64_t> path, uint16_t generation = 1) {
    LastPath last;
    uint32_t known = 0;
    for (const uint64_t address : path) {
        uint64_t rule = 0;
        if (last.find({address, false, generation}, &rule)) {
            CHECK(rule == address);
            ++known;
        } else {
            last.keep({address, false, generation}, address);
        }
    }
    return known;
}

TEST(unwind_the_last_path_is_known_again) {
    CHECK(last_path::open());
    CHECK(known_of({1, 2, 3, 4, 5}) == 0);
    CHECK(known_of({1, 2, 3, 4, 5}) == 5);
    CHECK(known_of({7, 8, 9, 3, 4, 5}) == 3);        // other inner frames, and more of them
    CHECK(known_of({4, 5}) == 2);                    // fewer
    CHECK(known_of({7, 4, 8, 5}) == 2);              // one in between
    CHECK(known_of({5, 4, 8, 7}) == 1);              // another order is another path
    CHECK(known_of({5, 4, 8, 7}, 2) == 0);           // images of another generation
    CHECK(known_of({}) == 0 && known_of({5}) == 0);  // nothing was passed
    CHECK(known_of({9, 9, 9}) == 0 && known_of({9, 9, 9}) == 3);  // recursion
}

TEST(unwind_longer_paths_are_known_in_part) {
    CHECK(last_path::open());
    for (int round = 0; round < 2; ++round) {
        LastPath last;
        uint32_t known = 0;
        for (uint64_t address = 1; address <= 500; ++address) {
            uint64_t rule = 0;
            if (last.find({address, false, 1}, &rule))
                ++known;
            else
                last.keep({address, false, 1}, address);
        }
        CHECK(round == 0 ? known == 0 : known > 20 && known < 100);
    }
}

TEST(unwind_a_walk_in_the_midst_of_another_knows_nothing) {
    CHECK(last_path::open());
    CHECK(known_of({1, 2, 3}) == 0);
    {
        LastPath outer;
        uint64_t rule = 0;
        CHECK(outer.find({1, false, 1}, &rule));
        CHECK(known_of({1, 2, 3}) == 0 && known_of({1, 2, 3}) == 0);
        CHECK(outer.find({2, false, 1}, &rule) && rule == 2);
    }
    CHECK(known_of({1, 2}) == 2);
    // A child's only thread is not in the midst of a walk, whatever others were in.
    LastPath never_ended;
    last_path::forget();
    CHECK(known_of({1, 2}) == 2);
}

// Each forked child forgets, and most of the table was never touched: a page fault costs more than
// all that is in the page.
#if !defined(__SANITIZE_THREAD__)  // its own pages are counted with ours
TEST(unwind_forgetting_touches_few_pages) {
    CHECK(last_path::open());
    CHECK(known_of({1, 2}) <= 2);
    const auto faults = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_minflt;
    };
    const pid_t child = fork();
    if (child == 0) {
        faults();
        const long before = faults();
        last_path::forget();
        _exit(faults() - before > 4 ? 1 : 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}
#endif

TEST(unwind_nothing_is_believed_while_a_library_is_closed) {
    prepare();
    const auto here = reinterpret_cast<uint64_t>(&walk_here);
    uint16_t before = 0;
    {
        const images::Reading reading;
        CHECK(reading && reading.find(here) && reading.find(here)->entries > 0);
        CHECK(!reading.find(1) && !reading.find(~uint64_t{0}));
        before = reading.generation();
    }
    images::closing();
    CHECK(!images::Reading());
    CHECK(!images::begin());
    Found found;
    walk_here(&found);
    CHECK(found.path == Path::truncated && found.count == 1);
    images::closed();
    CHECK(!images::Reading());
    CHECK(read_images());
    const images::Reading reading;
    CHECK(reading && reading.generation() != before);
}

TEST(unwind_a_table_stays_as_long_as_it_is_read) {
    prepare();
    const auto here = reinterpret_cast<uint64_t>(&walk_here);
    const images::Reading first;
    const images::Image* image = first.find(here);
    const uint64_t start = image->start;
    CHECK(read_images());
    const images::Reading second;
    CHECK(second && second.generation() == first.generation());
    CHECK(read_images());
    const images::Reading third;
    CHECK(!read_images());  // there is no fourth table
    CHECK(image->start == start && first.find(here) == image);
}

TEST(unwind_to_the_first_frame) {
    prepare();
    Found found;
    deeper(20, &found, kRoom);
    CHECK(found.path == Path::whole && found.count > 22 && !found.unknown);
    for (uint32_t i = 0; i + 1 < found.count; ++i) {
        CHECK(found.frames[i].cfa == found.frames[i + 1].sp);
        CHECK(found.frames[i].sp < found.frames[i].cfa);
    }
    // Another thread's path ends where the thread begins.
    pthread_t thread;
    CHECK(pthread_create(
              &thread, nullptr,
              [](void* to) -> void* {
                  walk_here(static_cast<Found*>(to));
                  return nullptr;
              },
              &found) == 0);
    CHECK(pthread_join(thread, nullptr) == 0);
    CHECK(found.path == Path::whole && found.count >= 3);
}

TEST(unwind_around_what_lies_on_another_stack) {
    // Elsewhere the compiler chooses where a return address lies, and nothing is told.
    if (arch::kReturnOnStack) {
        look_around(plain_hold);
        look_around(framed_hold);
    }
    // What lies on no stack is in no frame.
    static const uint64_t elsewhere = 0;
    Found found;
    CHECK(!walk_around(reinterpret_cast<uint64_t>(&elsewhere), found.frames, kRoom, &found.count));
}

TEST(unwind_finds_the_frame_pointer) {
    prepare();
    Found found;
    Found known;
    clear_stack();
    framed(20, &found, &known);
    CHECK(known.count > 21 && (known.path == Path::whole || known.path == Path::guessed));
    CHECK(found.path == Path::guessed && found.count == known.count && !found.unknown);
    for (uint32_t i = 0; i < known.count; ++i) {
        CHECK(found.frames[i].pc == known.frames[i].pc);
        // Elsewhere a frame record does not say where the caller's frame begins.
        CHECK(!arch::kReturnOnStack || (found.frames[i].sp == known.frames[i].sp &&
                                        found.frames[i].cfa == known.frames[i].cfa));
    }
}

// Our hooks and handlers work on stacks of our own: a sample that falls into one has a whole path.
TEST(unwind_from_a_stack_of_our_own) {
    prepare();
    CHECK(own_stack::open());
    Found direct;
    deeper(5, &direct, kRoom);
    Found found;
    CHECK(own_stack::run([](void* to) { deeper(5, static_cast<Found*>(to), kRoom); }, &found));
    CHECK(found.path == Path::whole && !found.unknown);
    CHECK(found.count > direct.count);  // by the function that was called, and what called it
    CHECK(found.frames[found.count - 1].pc == direct.frames[direct.count - 1].pc);
    const auto sp = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    uint32_t holding = 0;
    for (uint32_t i = 0; i < found.count; ++i)
        holding += found.frames[i].sp <= sp && sp < found.frames[i].cfa ? 1 : 0;
    CHECK(holding == 1);
}

TEST(unwind_is_bounded) {
    prepare();
    Found found;
    deeper(200, &found, 64);
    CHECK(found.path == Path::truncated && found.count == 64);
    deeper(200, &found, 1);
    CHECK(found.path == Path::truncated && found.count == 1);
}

#if !TG_THREAD_SANITIZER
static Found g_found;

static void in_handler(int) { walk_here(&g_found); }

TEST(unwind_through_signal_handlers) {
    prepare();
    alignas(16) static char other[64 * 1024];
    stack_t stack{};
    stack.ss_sp = other;
    stack.ss_size = sizeof other;
    CHECK(sigaltstack(&stack, nullptr) == 0);
    for (const int flags : {0, SA_ONSTACK}) {
        struct sigaction action{};
        action.sa_handler = in_handler;
        action.sa_flags = flags;
        sigaction(SIGUSR1, &action, nullptr);
        g_found = {};
        raise(SIGUSR1);
        CHECK(g_found.path == Path::whole);
        bool found_test = false;
        for (uint32_t i = 0; i < g_found.count; ++i) {
            const auto sp = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
            found_test = found_test || (g_found.frames[i].sp <= sp && sp < g_found.frames[i].cfa);
        }
        CHECK(found_test);
    }
}
#endif

// A stack whose words are not what the code says must never pass for a whole path.
TEST(unwind_contradictions_are_torn) {
    prepare();
    ucontext_t context;
    CHECK(getcontext(&context) == 0);
    const Registers good = registers_of(context);
    Found found;
    uint64_t state = 1;
    alignas(16) static uint64_t words[4096];
    for (int round = 0; round < 2000; ++round) {
        for (uint64_t& word : words) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            // plausible ones, too: code of ours, though not behind a call, and stack
            word = (state >> 60) < 4   ? reinterpret_cast<uint64_t>(&walk_here) + (state >> 56 & 15)
                   : (state >> 60) < 8 ? reinterpret_cast<uint64_t>(words + (state >> 40 & 4095))
                                       : state >> (state >> 58);
        }
        Registers broken = good;
        broken.set(kStack, reinterpret_cast<uint64_t>(words + round));
        broken.set(kFrame, reinterpret_cast<uint64_t>(words + (state >> 52 & 4095)));
        found.path = walk(broken, found.frames, kRoom, &found.count, &found.unknown);
        CHECK(found.path == Path::torn || found.path == Path::truncated);
    }
    for (const uint64_t sp : {uint64_t{0}, uint64_t{8}, ~uint64_t{0}, uint64_t{1} << 47}) {
        Registers broken = good;
        broken.set(kStack, sp);
        broken.set(kFrame, sp);
        CHECK(walk(broken, found.frames, kRoom, &found.count, &found.unknown) == Path::torn);
    }
    Registers nowhere = good;
    nowhere.set(kPc, 0x10);
    CHECK(walk(nowhere, found.frames, kRoom, &found.count, &found.unknown) == Path::truncated);
    CHECK(found.unknown && found.count == 1);
}

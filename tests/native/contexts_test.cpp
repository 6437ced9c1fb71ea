// Interning from many threads at once.
#include "stacks/contexts.h"
#include "base/kernel.h"
#include "check.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/paths.h"
#include "stacks/threads.h"

#include <sys/resource.h>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using namespace tachograph;

namespace {

constexpr uint32_t kThreads = 8;

void open() {
    CHECK(spool::open(tests::folder, 8 << 20, 1) == 0 && spool::prepare_second() == 0);
    CHECK(contexts::open());
}

template <typename Body>
void on_all_threads(Body body) {
    std::atomic<uint32_t> waiting{kThreads};
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&, thread] {
            waiting.fetch_sub(1);
            while (waiting.load() != 0) {
            }
            body(thread);
        });
    for (std::thread& thread : threads) thread.join();
}

// A node of a tree of 16 children each, `depth` steps down, chosen by `seed`.
uint32_t path(uint32_t seed, int depth) {
    uint32_t node = kNone;
    for (int step = 0; step < depth; ++step, seed = seed * 1664525u + 1013904223u)
        node = contexts::intern_stack(node, seed >> 28, static_cast<int32_t>(seed >> 26 & 3) - 1);
    return node;
}

}  // namespace

TEST(contexts_same_and_different_paths) {
    constexpr uint32_t kPaths = 4000;
    open();
    std::vector<std::vector<uint32_t>> found(kThreads, std::vector<uint32_t>(kPaths));
    on_all_threads([&](uint32_t thread) {
        for (uint32_t i = 0; i < kPaths; ++i) {
            const uint32_t seed = (i + thread * 500) % kPaths;  // the same ones, in another order
            found[thread][seed] = path(seed * 2654435761u, 6);
        }
    });
    for (uint32_t thread = 1; thread < kThreads; ++thread) CHECK(found[thread] == found[0]);
    for (const uint32_t node : found[0]) CHECK(node != kNone);
    // Equal paths have equal ids, and only they.
    for (uint32_t seed = 0; seed < kPaths; ++seed)
        CHECK(path(seed * 2654435761u, 6) == found[0][seed]);
    std::set<uint32_t> children;
    for (uint32_t code = 0; code < 1000; ++code)
        for (const int32_t instruction : {-1, 0, 2}) {
            const uint32_t id = contexts::intern_stack(found[0][1], 1'000'000 + code, instruction);
            CHECK(id != kNone && children.insert(id).second);
        }
    CHECK(spool::control()->losses[static_cast<uint32_t>(Loss::records_dropped)] == 0);
}

namespace {

void add_own_thread() {
    CHECK(threads::open());
    threads::set_own(threads::add(kernel::gettid(), true, kernel::monotonic_ns()));
    paths::open();
}

uint32_t whole(const std::vector<tg_frame>& frames, const tg_text* task = nullptr,
               size_t of_task = 0, tg_activation* activation = nullptr) {
    return paths::intern(
        {frames.data(), frames.size(), task, of_task, 0, activation, activation ? 1u : 0u});
}

}  // namespace

// Stacks that come and go at their ends, as a program's do, with tasks in some of them.
TEST(contexts_whole_stacks_are_their_frames) {
    open();
    add_own_thread();
    std::vector<tg_frame> stack(50, tg_frame{nullptr, nullptr, 0, 1});
    const uint8_t text[] = {'t'};
    const tg_text name{text, 1, 1};
    uint32_t random = 1;
    const auto below = [&](uint32_t most) {
        random = random * 1664525u + 1013904223u;
        return (random >> 8) % most;
    };
    for (int round = 0; round < tests::rounds(20'000); ++round) {
        const uint32_t gone = below(below(4) == 0 ? 50 : 4);
        stack.erase(stack.begin(), stack.begin() + (gone < stack.size() ? gone : 0));
        while (stack.size() < 20 || below(3) != 0)
            stack.insert(stack.begin(),
                         {nullptr, nullptr, static_cast<int32_t>(below(3)) * 2, below(5)});
        const size_t of_task = below(static_cast<uint32_t>(stack.size()));
        const tg_text* task = below(4) == 0 ? &name : nullptr;
        tg_activation activation{nullptr, kNone, below(static_cast<uint32_t>(stack.size()) + 5)};
        uint32_t node = kNone;
        uint32_t of_activation = kNone;
        for (size_t at = stack.size(); at-- > 0;) {
            node = contexts::intern_stack(node, stack[at].id, stack[at].instruction,
                                          at == of_task ? task : nullptr);
            if (at == activation.innermost) of_activation = node;
        }
        CHECK(whole(stack, task, of_task, &activation) == node);
        CHECK(activation.stack == of_activation);
    }
}

// With another tree behind it, only a stack that is remembered keeps its node.
TEST(contexts_what_two_stacks_have_in_common_is_not_looked_for) {
    open();
    add_own_thread();
    std::vector<tg_frame> stack(900, tg_frame{nullptr, nullptr, 2, 3});
    for (uint32_t code = 0; code < 100; ++code) contexts::intern_stack(kNone, 1000 + code, 0);
    const uint32_t node = whole(stack);
    CHECK(node == 999 && whole(stack) == node);
    contexts::forget();
    CHECK(whole(stack) == node);
    stack[0].instruction = 4;  // the leaf alone is looked for
    CHECK(whole(stack) == 0);
    paths::forget();
    CHECK(whole(stack) == 900);
}

TEST(contexts_names_of_tasks) {
    constexpr uint32_t kNames = 1000;
    open();
    const uint32_t root = contexts::intern_stack(kNone, 1, 0);
    const uint32_t nameless = contexts::intern_stack(root, 2, 4);
    const auto of_task = [&](uint32_t number) {
        const std::string text = "task " + std::to_string(number);
        const tg_text name{reinterpret_cast<const uint8_t*>(text.data()),
                           static_cast<uint32_t>(text.size()), 1};
        return contexts::intern_stack(root, 2, 4, &name);
    };
    std::vector<std::vector<uint32_t>> found(kThreads, std::vector<uint32_t>(kNames));
    on_all_threads([&](uint32_t thread) {
        for (uint32_t i = 0; i < kNames; ++i) found[thread][i] = of_task(i);
    });
    for (uint32_t thread = 1; thread < kThreads; ++thread) CHECK(found[thread] == found[0]);
    std::set<uint32_t> nodes(found[0].begin(), found[0].end());
    CHECK(nodes.size() == kNames && nodes.count(nameless) == 0);
    // Until there are enough of them: then the node is that of no name, and each such stack counts.
    uint32_t unkept = 0;
    for (uint32_t i = kNames; i < 3 * kNames; ++i) {
        const uint32_t node = of_task(i);
        unkept += node == nameless ? 1 : 0;
        CHECK(node == nameless || nodes.insert(node).second);
    }
    CHECK(nodes.size() == 1024);
    CHECK(spool::control()->losses[static_cast<uint32_t>(Loss::task_names_unkept)] == unkept);
    CHECK(of_task(0) == found[0][0]);
    // The same bytes as wider characters are another name.
    const uint8_t bytes[4] = {'a', 0, 'b', 0};
    const tg_text narrow{bytes, 4, 1};
    const tg_text wide{bytes, 2, 2};
    contexts::forget();
    const uint32_t first = contexts::intern_stack(kNone, 1, 0, &narrow);
    CHECK(contexts::intern_stack(kNone, 1, 0, &wide) != first);
    CHECK(contexts::intern_stack(kNone, 1, 0, &narrow) == first);
}

TEST(contexts_one_code_is_written_once) {
    constexpr uint64_t kCodes = 3000;
    open();
    std::vector<std::atomic<uint32_t>> written(kCodes);
    std::vector<std::vector<uint32_t>> ids(kThreads, std::vector<uint32_t>(kCodes));
    on_all_threads([&](uint32_t thread) {
        for (uint64_t i = 0; i < kCodes; ++i) {
            int emit = 0;
            ids[thread][i] = contexts::intern_code((i + 1) * 0x9E3779B97F4A7C15ull, &emit);
            if (!emit) continue;
            // Every seventh cannot be written at the first try; another thread tries again.
            const bool failed = i % 7 == 0 && written[i].fetch_add(0x10000) < 0x10000;
            if (!failed) written[i].fetch_add(1);
            contexts::code_written(ids[thread][i], !failed);
        }
    });
    for (uint32_t thread = 1; thread < kThreads; ++thread) CHECK(ids[thread] == ids[0]);
    CHECK(std::set<uint32_t>(ids[0].begin(), ids[0].end()).size() == kCodes);
    for (uint64_t i = 0; i < kCodes; ++i) {
        int emit = 0;
        CHECK(contexts::intern_code((i + 1) * 0x9E3779B97F4A7C15ull, &emit) == ids[0][i]);
        if (emit)
            contexts::code_written(ids[0][i], true);  // the try after the failed one came only now
        CHECK((written[i].load() & 0xFFFF) == (emit ? 0u : 1u));
    }
}

// One thread, half a million nodes: nothing for the thread sanitizer.
#if !TG_THREAD_SANITIZER
TEST(contexts_full_tables) {
    CHECK(spool::open(tests::folder, 8 << 20, 1) == 0 && spool::prepare_second() == 0);
    CHECK(contexts::open({1u << 19, 1u << 17}));
    std::unordered_map<uint32_t, uint64_t> codes;
    int refused = 0;
    for (uint64_t identity = 1; refused < 100; ++identity) {
        int emit = 0;
        const uint32_t id = contexts::intern_code(identity, &emit);
        if (id == kNone)
            ++refused;
        else
            CHECK(codes.emplace(id, identity).second);
        CHECK(identity < 2'000'000);
    }
    CHECK(codes.size() > 100'000);  // it does not give up before it is well filled
    for (const auto& [id, identity] : codes) {
        int emit = 0;
        CHECK(contexts::intern_code(identity, &emit) == id);
    }
    // The tree: what was there stays, what is new is refused, a known path under a full tree is
    // found.
    uint32_t last = kNone;
    uint32_t count = 0;
    for (uint32_t code = 0;; ++code, ++count) {
        const uint32_t id = contexts::intern_stack(kNone, code, 0);
        if (id == kNone) break;
        last = id;
    }
    CHECK(count >= 65'536);
    CHECK(contexts::intern_stack(kNone, count - 1, 0) == last);
    for (uint32_t code = 0; code < 1000; ++code)
        CHECK(contexts::intern_stack(last, code, 0) == kNone);
}
#endif

#if !TG_THREAD_SANITIZER && !defined(__SANITIZE_ADDRESS__)
TEST(contexts_little_address_space) {
    CHECK(spool::open(tests::folder, 1 << 20, 1) == 0);
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = 40 << 20;
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(contexts::open());  // a smaller tree instead of none
    CHECK(contexts::intern_stack(kNone, 1, 0) == 0);
    CHECK(contexts::intern_stack(0, 1, 0) == 1);
    CHECK(contexts::intern_stack(kNone, 1, 0) == 0);
}
#endif

TEST(contexts_scratch_buffers) {
    open();
    std::set<void*> all;
    size_t size = 0;
    while (void* scratch = contexts::borrow_scratch(&size)) {
        CHECK(size >= 65536 && all.insert(scratch).second);
        CHECK(all.size() <= 1000);
    }
    CHECK(all.size() >= 16);
    for (void* scratch : all) contexts::return_scratch(scratch);

    std::atomic<uint32_t> refused{0};
    on_all_threads([&](uint32_t thread) {
        for (uint32_t i = 0; i < 5000; ++i) {
            size_t room = 0;
            auto* mine = static_cast<volatile uint32_t*>(contexts::borrow_scratch(&room));
            if (!mine) {
                refused.fetch_add(1);
                continue;
            }
            for (uint32_t word = 0; word < 16; ++word) mine[word] = thread * 1'000'000 + i;
            for (uint32_t word = 0; word < 16; ++word) CHECK(mine[word] == thread * 1'000'000 + i);
            contexts::return_scratch(const_cast<uint32_t*>(mine));
        }
    });
    CHECK(refused.load() == 0);
}

#include "stacks/contexts.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/generations.h"
#include "stacks/node_table.h"
#include "tachograph/mixing.h"

#include <atomic>

namespace tachograph::contexts {
namespace {

constexpr uint32_t kFewestNodes = 1u << 16;
constexpr uint32_t kFewestCodes = 1u << 15;
constexpr uint32_t kScratches = 32;
constexpr size_t kScratchSize = 96 * 1024;  // 4,096 frames of 24 bytes

// Names of tasks are told apart by their contents' hashes (collisions: 2^-64, knowingly). There is
// an end to them: where a program makes one up for each of its tasks, each would have its own tree.
constexpr uint32_t kMostNames = 1024;
constexpr uint32_t kNamePlaces = 2 * kMostNames;

struct Key {
    uint32_t parent;
    uint32_t code;
    int32_t instruction;
    uint16_t task;  // place of the name + 1, 0 = none
};

struct Node {
    uint32_t parent;
    uint32_t code;
    int32_t instruction;
    uint16_t task;
    Once once;

    bool same(const Key& key) const {
        return parent == key.parent && code == key.code && instruction == key.instruction &&
               task == key.task;
    }
    void set(const Key& key) {
        parent = key.parent;
        code = key.code;
        instruction = key.instruction;
        task = key.task;
    }
};
static_assert(sizeof(Node) == 16);

struct Code {
    uint64_t identity;
    Once once;

    bool same(uint64_t wanted) const { return identity == wanted; }
    void set(uint64_t wanted) { identity = wanted; }
};

struct Tables {
    NodeTable<Node, Key> nodes;
    NodeTable<Code, uint64_t> codes;
    std::atomic<uint64_t>* names = nullptr;
    std::atomic<uint32_t> names_used{0};

    bool open(const Sizes& sizes) {
        return nodes.open(sizes.nodes, sizes.nodes < kFewestNodes ? sizes.nodes : kFewestNodes) &&
               codes.open(sizes.codes, sizes.codes < kFewestCodes ? sizes.codes : kFewestCodes) &&
               (names || own_memory::map_for_one_process(&names, sizeof(uint64_t) * kNamePlaces));
    }
    bool clear() {
        names_used.store(0, std::memory_order_relaxed);
        return nodes.clear() && codes.clear() &&
               kernel::clear_for_one_process(names, sizeof(uint64_t) * kNamePlaces);
    }
};

struct State {
    Tables tables[generations::kPlaces];
    Sizes sizes;
    uint8_t* scratch = nullptr;
    std::atomic<uint32_t> scratch_taken{0};
    bool pins[kScratches] = {};  // whether who borrowed it has pinned the generation for it
};
constinit State g;

Tables& here() { return g.tables[generations::place()]; }

size_t bytes_of(const tg_text& text) { return size_t{text.length} * text.width; }

// The name's place + 1; 0 if there is no room for another one.
uint16_t intern_name(const tg_text& name) {
    uint64_t hash = 0xCBF29CE484222325ull + name.width;  // FNV-1a
    for (size_t at = 0; at < bytes_of(name); ++at) hash = (hash ^ name.data[at]) * 0x100000001B3ull;
    hash = mix(hash);
    if (hash == 0) hash = 1;
    Tables& tables = here();
    for (uint32_t probe = 0; probe < kNamePlaces; ++probe) {
        const uint32_t place = (hash + probe) % kNamePlaces;
        uint64_t found = tables.names[place].load(std::memory_order_relaxed);
        if (found == 0) {
            if (tables.names_used.load(std::memory_order_relaxed) >= kMostNames) break;
            if (tables.names[place].compare_exchange_strong(found, hash,
                                                            std::memory_order_relaxed)) {
                tables.names_used.fetch_add(1, std::memory_order_relaxed);
                found = hash;
            }
        }
        if (found == hash) return static_cast<uint16_t>(place + 1);
    }
    spool::count(Loss::task_names_unkept);
    return 0;
}

void write_stack(uint32_t id, Node& node, const tg_text* name) {
    if (!node.once.claim()) return;
    const spool::Ticket ticket =
        name ? spool::reserve(Kind::task_stack, sizeof(TaskStackRecord) + bytes_of(*name))
             : spool::reserve(Kind::stack, sizeof(StackRecord));
    if (ticket.record) {
        auto* record = reinterpret_cast<StackRecord*>(ticket.record);
        record->stack = id;
        record->parent = node.parent;
        record->code = node.code;
        record->instruction = node.instruction;
        if (name) {
            auto* named = reinterpret_cast<TaskStackRecord*>(ticket.record);
            named->task_length = name->length;
            named->task_width = name->width;
            safe_read::copy(named + 1, name->data, bytes_of(*name));  // memcpy would be counted
        }
        spool::commit(ticket);
    }
    node.once.done(ticket.record != nullptr);
}

}  // namespace

bool open(const Sizes& sizes) {
    if (g.scratch) return true;
    g.sizes = sizes;
    return g.tables[0].open(sizes) && own_memory::map(&g.scratch, kScratches * kScratchSize);
}

void forget() {
    for (Tables& tables : g.tables) {
        tables.clear();
        tables.nodes.set_base(0);
        tables.codes.set_base(0);
    }
    g.scratch_taken.store(0);  // by walks of the parent's other threads
}

uint32_t intern_stack(uint32_t parent, uint32_t code, int32_t instruction, const tg_text* task,
                      bool last_room) {
    const uint16_t name = task ? intern_name(*task) : 0;
    const uint64_t key = mix(static_cast<uint64_t>(parent) << 32 | code) ^
                         (uint64_t{name} << 32 | static_cast<uint32_t>(instruction));
    NodeTable<Node, Key>& nodes = here().nodes;
    const uint32_t id = nodes.intern({parent, code, instruction, name}, mix(key), last_room);
    if (id == nodes.kFull) return kNone;
    write_stack(id, nodes.at(id), name ? task : nullptr);
    return id;
}

bool is_written(uint32_t stack) { return here().nodes.at(stack).once.is_done(); }

uint32_t intern_code(uint64_t identity, int* emit) {
    NodeTable<Code, uint64_t>& codes = here().codes;
    const uint32_t id = codes.intern(identity, mix(identity), true);
    *emit = id != codes.kFull && codes.at(id).once.claim() ? 1 : 0;
    return id == codes.kFull ? kNone : id;
}

void code_written(uint32_t code, bool written) { here().codes.at(code).once.done(written); }

bool nearly_full(uint32_t place) {
    return g.tables[place].nodes.nearly_full() || g.tables[place].codes.nearly_full();
}

uint32_t first_stack(uint32_t place) { return g.tables[place].nodes.base(); }
uint32_t first_code(uint32_t place) { return g.tables[place].codes.base(); }

bool may_follow(uint32_t present, uint32_t next) {
    return g.tables[present].nodes.may_close() && g.tables[present].codes.may_close() &&
           g.tables[next].open(g.sizes);
}

void follow(uint32_t present, uint32_t next) {
    g.tables[next].nodes.set_base(g.tables[present].nodes.close());
    g.tables[next].codes.set_base(g.tables[present].codes.close());
}

bool clear(uint32_t place) { return g.tables[place].clear(); }

void* borrow_scratch(size_t* size) {
    uint32_t taken = g.scratch_taken.load(std::memory_order_relaxed);
    while (taken != ~0u) {
        const int free = __builtin_ctz(~taken);
        if (g.scratch_taken.compare_exchange_weak(taken, taken | 1u << free,
                                                  std::memory_order_acquire)) {
            *size = kScratchSize;
            g.pins[free] = generations::pin();
            return g.scratch + static_cast<size_t>(free) * kScratchSize;
        }
    }
    return nullptr;
}

void return_scratch(void* scratch) {
    const auto place =
        (static_cast<uint8_t*>(scratch) - g.scratch) / static_cast<ptrdiff_t>(kScratchSize);
    if (g.pins[place]) generations::unpin();
    g.scratch_taken.fetch_and(~(1u << place), std::memory_order_release);
}

}  // namespace tachograph::contexts

#include "stacks/contexts.h"

#include "base/kernel.h"
#include "base/mixing.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/node_table.h"

#include <atomic>

namespace tachograph::contexts {
namespace {

constexpr uint32_t kMostNodes = 1u << 22;
constexpr uint32_t kFewestNodes = 1u << 16;
constexpr uint32_t kCodes = 1u << 18;
constexpr uint32_t kScratches = 32;
constexpr size_t kScratchSize = 96 * 1024;  // 4,096 frames of 24 bytes
constexpr uint32_t kProbes = 256;

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

struct State {
    NodeTable<Node, Key> nodes;
    std::atomic<uint64_t>* identities = nullptr;  // code id = place in this table
    Once* written = nullptr;
    std::atomic<uint64_t>* names = nullptr;
    std::atomic<uint32_t> names_used{0};
    uint8_t* scratch = nullptr;
    std::atomic<uint32_t> scratch_taken{0};
};
constinit State g;

size_t bytes_of(const tg_text& text) { return size_t{text.length} * text.width; }

// The name's place + 1; 0 if there is no room for another one.
uint16_t intern_name(const tg_text& name) {
    uint64_t hash = 0xCBF29CE484222325ull + name.width;  // FNV-1a
    for (size_t at = 0; at < bytes_of(name); ++at) hash = (hash ^ name.data[at]) * 0x100000001B3ull;
    hash = mix(hash);
    if (hash == 0) hash = 1;
    for (uint32_t probe = 0; probe < kNamePlaces; ++probe) {
        const uint32_t place = (hash + probe) % kNamePlaces;
        uint64_t found = g.names[place].load(std::memory_order_relaxed);
        if (found == 0) {
            if (g.names_used.load(std::memory_order_relaxed) >= kMostNames) break;
            if (g.names[place].compare_exchange_strong(found, hash, std::memory_order_relaxed)) {
                g.names_used.fetch_add(1, std::memory_order_relaxed);
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

bool open() {
    if (g.scratch) return true;
    return g.nodes.open(kMostNodes, kFewestNodes) &&
           own_memory::map(&g.identities, sizeof(uint64_t) * kCodes) &&
           own_memory::map(&g.written, kCodes) &&
           own_memory::map(&g.names, sizeof(uint64_t) * kNamePlaces) &&
           own_memory::map(&g.scratch, kScratches * kScratchSize);
}

void forget() {
    g.nodes.forget();
    kernel::clear(g.identities, sizeof(uint64_t) * kCodes);
    kernel::clear(g.written, kCodes);
    kernel::clear(g.names, sizeof(uint64_t) * kNamePlaces);
    g.names_used.store(0);
    g.scratch_taken.store(0);  // by walks of the parent's other threads
}

uint32_t intern_stack(uint32_t parent, uint32_t code, int32_t instruction, const tg_text* task) {
    const uint16_t name = task ? intern_name(*task) : 0;
    const uint64_t key = mix(static_cast<uint64_t>(parent) << 32 | code) ^
                         (uint64_t{name} << 32 | static_cast<uint32_t>(instruction));
    const uint32_t id = g.nodes.intern({parent, code, instruction, name}, mix(key));
    if (id == g.nodes.kFull) return kNone;
    write_stack(id, g.nodes.at(id), name ? task : nullptr);
    return id;
}

uint32_t intern_code(uint64_t identity, int* emit) {
    *emit = 0;
    if (identity == 0) identity = 1;
    uint64_t place = mix(identity);
    for (uint32_t probe = 0; probe < kProbes; ++probe, ++place) {
        const auto id = static_cast<uint32_t>(place & (kCodes - 1));
        uint64_t found = g.identities[id].load(std::memory_order_acquire);
        if (found == 0 &&
            g.identities[id].compare_exchange_strong(found, identity, std::memory_order_acq_rel))
            found = identity;
        if (found != identity) continue;
        *emit = g.written[id].claim() ? 1 : 0;
        return id;
    }
    return kNone;
}

void code_written(uint32_t code, bool written) { g.written[code].done(written); }

void* borrow_scratch(size_t* size) {
    uint32_t taken = g.scratch_taken.load(std::memory_order_relaxed);
    while (taken != ~0u) {
        const int free = __builtin_ctz(~taken);
        if (g.scratch_taken.compare_exchange_weak(taken, taken | 1u << free,
                                                  std::memory_order_acquire)) {
            *size = kScratchSize;
            return g.scratch + static_cast<size_t>(free) * kScratchSize;
        }
    }
    return nullptr;
}

void return_scratch(void* scratch) {
    const auto place =
        (static_cast<uint8_t*>(scratch) - g.scratch) / static_cast<ptrdiff_t>(kScratchSize);
    g.scratch_taken.fetch_and(~(1u << place), std::memory_order_release);
}

}  // namespace tachograph::contexts

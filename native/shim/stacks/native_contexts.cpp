#include "stacks/native_contexts.h"

#include "base/mixing.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/node_table.h"

namespace tachograph::native_contexts {
namespace {

constexpr uint32_t kMostNodes = 1u << 20;
constexpr uint32_t kFewestNodes = 1u << 14;

struct Key {
    uint32_t parent;
    uint32_t stack;
    uint64_t pc;
};

struct Node {
    uint32_t parent;
    uint32_t stack;
    uint32_t pc_low;
    uint16_t pc_high;
    Once once;

    bool same(const Key& key) const {
        return parent == key.parent && stack == key.stack &&
               pc_low == static_cast<uint32_t>(key.pc) &&
               pc_high == static_cast<uint16_t>(key.pc >> 32);
    }
    void set(const Key& key) {
        parent = key.parent;
        stack = key.stack;
        pc_low = static_cast<uint32_t>(key.pc);
        pc_high = static_cast<uint16_t>(key.pc >> 32);
    }
};
static_assert(sizeof(Node) == 16);

struct State {
    NodeTable<Node, Key> nodes;
};
constinit State g;

}  // namespace

bool open() { return g.nodes.open(kMostNodes, kFewestNodes); }

void forget() { g.nodes.forget(); }

uint64_t next_hash(uint64_t hash, uint64_t pc, uint32_t stack) {
    const uint64_t next = mix(hash ^ pc ^ (uint64_t{stack} << 40));
    g.nodes.prefetch(next);
    return next;
}

uint32_t intern(uint32_t parent, const Frame& frame) {
    const uint32_t place = g.nodes.intern({parent, frame.stack, frame.pc}, frame.hash);
    if (place == g.nodes.kFull) return 0;
    Node& node = g.nodes.at(place);
    const uint32_t id = place + 1;
    if (!node.once.claim()) return id;
    const spool::Ticket ticket = spool::reserve(Kind::native_stack, sizeof(NativeStackRecord));
    if (ticket.record) {
        auto* record = reinterpret_cast<NativeStackRecord*>(ticket.record);
        record->native_stack = id;
        record->parent = parent;
        record->pc = frame.pc;
        record->stack = frame.stack;
        spool::commit(ticket);
    }
    node.once.done(ticket.record != nullptr);
    return id;
}

}  // namespace tachograph::native_contexts

#include "stacks/native_contexts.h"

#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/generations.h"
#include "stacks/node_table.h"
#include "tachograph/mixing.h"

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

constexpr uint32_t kFirstId = 1;  // 0 is "none"

struct State {
    NodeTable<Node, Key> tables[generations::kPlaces];
};
constinit State g;

NodeTable<Node, Key>& here() { return g.tables[generations::place()]; }

}  // namespace

bool open() {
    g.tables[0].set_base(kFirstId);
    return g.tables[0].open(kMostNodes, kFewestNodes);
}

void forget() {
    for (auto& table : g.tables) {
        table.clear();
        table.set_base(kFirstId);
    }
}

uint64_t next_hash(uint64_t hash, uint64_t pc, uint32_t stack) {
    const uint64_t next = mix(hash ^ pc ^ (uint64_t{stack} << 40));
    here().prefetch(next);
    return next;
}

uint32_t intern(uint32_t parent, const Frame& frame, bool last_room) {
    NodeTable<Node, Key>& nodes = here();
    const uint32_t id = nodes.intern({parent, frame.stack, frame.pc}, frame.hash, last_room);
    if (id == nodes.kFull) return 0;
    Node& node = nodes.at(id);
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

bool nearly_full(uint32_t place) {
    return g.tables[place].is_open() && g.tables[place].nearly_full();
}

uint32_t first(uint32_t place) { return g.tables[place].base(); }

bool may_follow(uint32_t present, uint32_t next) {
    return !g.tables[present].is_open() ||
           (g.tables[present].may_close() && g.tables[next].open(kMostNodes, kFewestNodes));
}

void follow(uint32_t present, uint32_t next) {
    if (g.tables[present].is_open()) g.tables[next].set_base(g.tables[present].close());
}

bool clear(uint32_t place) { return g.tables[place].clear(); }

}  // namespace tachograph::native_contexts

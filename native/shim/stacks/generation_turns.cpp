#include "stacks/generation_turns.h"

#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/contexts.h"
#include "stacks/generations.h"
#include "stacks/native_contexts.h"
#include "stacks/sources.h"

namespace tachograph::generation_turns {
namespace {

struct State {
    bool left = false;  // the other table is not emptied yet
    int64_t began_ns = 0;
};
constinit State g;

struct Oldest {
    uint32_t stack;
    uint32_t code;
    uint32_t native_stack;
};

// A reader that misses it goes by the one before, and keeps more.
void write_generation(const Oldest& oldest) {
    const spool::Ticket ticket = spool::reserve(Kind::generation, sizeof(GenerationRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<GenerationRecord*>(ticket.record);
    record->oldest_stack = oldest.stack;
    record->oldest_code = oldest.code;
    record->oldest_native_stack = oldest.native_stack;
    spool::commit(ticket);
}

void empty(uint32_t place) {
    if (!generations::is_pinned(place) && contexts::clear(place) && native_contexts::clear(place))
        g.left = false;
}

}  // namespace

void maintain(int64_t now_ns, bool window_ends) {
    const uint32_t present = generations::present();
    const uint32_t next = 1 - present;
    if (g.left) empty(next);
    const bool full = contexts::nearly_full(present) || native_contexts::nearly_full(present);
    if (g.left || !(full || window_ends) || (g.began_ns != 0 && now_ns - g.began_ns < kLeastNs))
        return;
    if (!contexts::may_follow(present, next) || !native_contexts::may_follow(present, next) ||
        !sources::keep())
        return;
    const Oldest oldest{contexts::first_stack(present), contexts::first_code(present),
                        native_contexts::first(present)};
    contexts::follow(present, next);
    native_contexts::follow(present, next);
    generations::change(next);
    g.left = true;
    g.began_ns = now_ns;
    write_generation(oldest);
}

void forget() { g = State{}; }

}  // namespace tachograph::generation_turns

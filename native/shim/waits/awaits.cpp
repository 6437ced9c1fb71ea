// Where suspended tasks of asyncio and trio await: a task that awaits is on no thread's stack.
//
// At random moments, between two ticks of the helper, a census looks at a random part of the tasks
// there are. It takes no lock and runs no code of the interpreter's. How long something was awaited
// is an estimate of the analyzer's, from the times of the censuses and the chances in them.
#include "base/kernel.h"
#include "base/large_data.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"

namespace tachograph::awaits {
namespace {

constexpr uint32_t kMostPlaces = 256;
constexpr uint64_t kUnreadable = 100;  // censuses: a library that is being imported takes less
constexpr int64_t kRest = 80;          // times what the last census took, until the next one

struct State {
    tg_awaiting places[kMostPlaces] = {};
    int64_t since_ns = 0;  // of the last census; 0: there was none since the beginning or a pause
    int64_t next_ns = 0;
    bool any = false;         // the last one found tasks
    uint64_t unreadable = 0;  // so many censuses in a row could not read a library's tasks
};
constinit TG_LARGE_ZEROS State g;

void write(int64_t now_ns, const tg_awaiting& place) {
    const spool::Ticket ticket = spool::reserve(Kind::await, sizeof(AwaitRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<AwaitRecord*>(ticket.record);
    record->time_ns = now_ns;
    record->since_ns = g.since_ns;
    record->chance = place.chance;
    record->stack = place.stack;
    record->awaiter = place.awaiter;
    record->tasks = place.tasks;
    record->span = place.span;
    spool::commit(ticket);
}

// A census leaves the pace of the ticks alone: tasks that stand still are no change.
bool tick(int64_t now_ns) {
    if (!recorder().waits || !recorder().walker.census) return true;
    if (recorder().paused.load(std::memory_order_relaxed)) {
        g.since_ns = 0;
        return true;
    }
    if (now_ns < g.next_ns) return true;
    const int64_t began_cpu_ns = kernel::own_cpu_ns();
    now_ns = kernel::monotonic_ns();  // other sources have had their turn since the tick began
    tg_census census{};
    census.places = g.places;
    census.room = kMostPlaces;
    recorder().walker.census(&census);
    g.unreadable = census.unreadable != 0 ? g.unreadable + 1 : 0;
    if (g.unreadable == kUnreadable) spool::count(Loss::task_libraries_unread);
    if (census.readable != 0) {
        if (g.since_ns == 0) g.since_ns = now_ns;
        for (uint32_t i = 0; i < census.count; ++i) write(now_ns, g.places[i]);
        if (census.count == 0 && g.any) write(now_ns, {TG_NONE, TG_NONE, 0, 0, 1});
        g.any = census.count > 0;
        g.since_ns = now_ns;
        if (census.torn > 0) spool::count(Loss::awaits_torn, census.torn);
        if (census.lost > 0) spool::count(Loss::stacks_lost, census.lost);
    }
    g.next_ns = now_ns + kRest * (kernel::own_cpu_ns() - began_cpu_ns);
    return true;
}

void forget() {
    g.since_ns = g.next_ns = 0;
    g.any = false;
    g.unreadable = 0;
}

constexpr Source kSource{.name = "awaits", .tick = tick, .forget = forget};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph::awaits

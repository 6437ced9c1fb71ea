// The source of facts about calls: the extension module watches them, and is told here when it is
// its turn.
#include "stacks/recorder.h"
#include "stacks/sources.h"

namespace tachograph {
namespace {

bool tick(int64_t now_ns) {
    if (recorder().walker.calls_turn) recorder().walker.calls_turn(now_ns);
    return true;
}

void flush() {
    if (recorder().walker.calls_flush) recorder().walker.calls_flush();
}

constexpr Source kSource = {
    .name = "calls", .tick = tick, .flush = [](bool) { flush(); }, .finish = flush};
TG_REGISTER_SOURCE(kSource);

}  // namespace
}  // namespace tachograph

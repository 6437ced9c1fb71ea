#include "stacks/recorder.h"

#include "base/kernel.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/sources.h"
#include "stacks/threads.h"

namespace tachograph {
namespace {

constinit Recorder g;

void end_spool(ControlState state, int error, int64_t now_ns) {
    Control* control = spool::control();
    if (state == ControlState::stopped_early) {
        control->stop_errno = static_cast<uint32_t>(error);
        spool::count(Loss::recording_stopped);
    }
    control->end_ns = now_ns;
    __atomic_store_n(&control->state, static_cast<uint32_t>(state), __ATOMIC_RELEASE);
    spool::save(true);
}

}  // namespace

Recorder& recorder() { return g; }

bool live() { return recording() && kernel::getpid() == spool::control()->pid; }

void stop_early(int error) {
    if (!g.recording.exchange(false)) return;
    sources::stop();
    end_spool(ControlState::stopped_early, error, kernel::monotonic_ns());
}

void end_recording(ControlState state, int error, void (*last_look)()) {
    spool::begin_end();
    sources::finish();
    if (last_look)
        last_look();
    else
        own_memory::look();
    const int64_t now = kernel::monotonic_ns();
    for (uint32_t index = 0; index < threads::high_water(); ++index) {
        threads::Thread* thread = threads::at(index);
        threads::end(thread, thread->tid.load(std::memory_order_acquire), now);
    }
    g.recording.store(false);
    sources::stop();
    end_spool(state, error, now);
}

}  // namespace tachograph

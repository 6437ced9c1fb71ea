#include "calls/open_calls.h"

namespace tachograph::calls {

thread_local OpenCalls::Lease OpenCalls::t_lease;
constinit OpenCalls::Thread OpenCalls::s_threads[kMostThreads] = {};
constinit OpenCall OpenCalls::s_suspended[kSuspended] = {};

OpenCalls::Lease::~Lease() {
    if (!thread) return;
    thread->depth = 0;
    thread->taken.store(false, std::memory_order_release);
    thread = nullptr;
}

OpenCalls::Thread* OpenCalls::own() {
    if (t_lease.thread) return t_lease.thread;
    for (Thread& each : s_threads) {
        if (each.taken.load(std::memory_order_relaxed) ||
            each.taken.exchange(true, std::memory_order_acquire))
            continue;
        each.depth = 0;
        t_lease.thread = &each;
        return &each;
    }
    return nullptr;
}

void OpenCalls::give_up(const OpenCall& call, uint32_t cause) {
    if (!call.lives()) return;
    --call.function->open_calls;
    lost_(cause);
}

void OpenCalls::drop_dead(Thread* thread) {
    while (thread->depth > 0 && !thread->calls[thread->depth - 1].lives()) --thread->depth;
}

bool OpenCalls::push(const OpenCall& call) {
    Thread* thread = own();
    if (thread) drop_dead(thread);
    if (!thread || thread->depth == kMostDepth) {
        lost_(TG_LOSS_CALLS_UNTIMED);
        return false;
    }
    // A frame in the place of one whose end was not told.
    if (thread->depth > 0 && thread->calls[thread->depth - 1].frame == call.frame)
        give_up(thread->calls[--thread->depth], TG_LOSS_CALLS_OUT_OF_ORDER);
    thread->calls[thread->depth++] = call;
    return true;
}

Ended OpenCalls::pop(const void* frame, int64_t now_ns, double watched_ns) {
    Thread* thread = t_lease.thread;
    if (!thread) return {};
    drop_dead(thread);
    size_t at = thread->depth;
    const size_t lowest = at > kLook ? at - kLook : 0;
    while (at > lowest && thread->calls[at - 1].frame != frame) --at;
    if (at == lowest) return {};
    OpenCall call = thread->calls[at - 1];
    if (!call.lives()) return {};
    // Others that began later and have not ended: they are on another stack.
    while (thread->depth > at) {
        give_up(thread->calls[--thread->depth], TG_LOSS_CALLS_OUT_OF_ORDER);
        call.timed = false;
    }
    --thread->depth;
    drop_dead(thread);
    const auto watching = static_cast<int64_t>(watched_ns - call.watched_ns);
    const int64_t ran = now_ns - call.resumed_ns - watching;
    if (thread->depth > 0) thread->calls[thread->depth - 1].callees_ns += ran;
    return {call.function, call, call.before_ns + ran};
}

bool OpenCalls::wants_callees(uint64_t silences) const {
    const Thread* thread = t_lease.thread;
    if (!thread) return false;
    const size_t lowest = thread->depth > kLook ? thread->depth - kLook : 0;
    for (size_t at = thread->depth; at > lowest; --at) {
        const OpenCall& call = thread->calls[at - 1];
        if (call.own_known && call.silences == silences && call.lives()) return true;
    }
    return false;
}

OpenCall* OpenCalls::suspended_at(const void* frame, size_t probe) {
    const uintptr_t hash = (reinterpret_cast<uintptr_t>(frame) >> 4) * 0x9E3779B97F4A7C15ull >> 40;
    return &s_suspended[(hash + probe) % kSuspended];
}

Ended OpenCalls::suspend(const Ended& ended) {
    OpenCall* oldest = nullptr;
    OpenCall* place = nullptr;
    for (size_t probe = 0; probe < kProbes && !place; ++probe) {
        OpenCall* each = suspended_at(ended.call.frame, probe);
        if (!each->function || !each->lives() || each->frame == ended.call.frame)
            place = each;
        else if (!oldest || each->resumed_ns < oldest->resumed_ns)
            oldest = each;
    }
    Ended over;
    if (!place) {
        place = oldest;
        give_up(*place, TG_LOSS_CALLS_UNTIMED);
    } else if (place->function && place->lives()) {
        over = {place->function, *place, place->before_ns};
    }
    *place = ended.call;
    place->before_ns = ended.time_ns;
    return over;
}

bool OpenCalls::resume(const void* frame, int64_t now_ns, double watched_ns) {
    for (size_t probe = 0; probe < kProbes; ++probe) {
        OpenCall* each = suspended_at(frame, probe);
        if (each->frame != frame || !each->function || !each->lives()) continue;
        OpenCall call = *each;
        each->function = nullptr;
        call.resumed_ns = now_ns;
        call.watched_ns = watched_ns;
        if (push(call)) return true;
        --call.function->open_calls;
        return false;
    }
    return false;
}

void OpenCalls::forget_other_threads() {
    for (Thread& each : s_threads) {
        if (&each == t_lease.thread) continue;
        each.depth = 0;
        each.taken.store(false, std::memory_order_relaxed);
    }
}

}  // namespace tachograph::calls

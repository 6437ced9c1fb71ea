// Begins and ends watching, and takes the interpreter's events.
#include "calls/watching.h"

#include "calls/clock.h"
#include "calls/events.h"
#include "calls/watcher.h"

namespace tachograph::calls {

Watcher watcher;

void count_loss(uint32_t cause) { watcher.api->count_loss(cause); }

namespace {

// A code object is about to be freed.
void freed(void* extra) {
    auto* function = static_cast<Function*>(extra);
    if (!function || !function->code) return;
    if (watcher.begun && watcher.api->active())
        watcher.functions.write(function, moment(now()), true, watcher.budget.spent_ns());
    if (function->state != Watch::open) --watcher.not_open;
    watcher.functions.remove(function);
}

void resume_watching() {
    const Moment time = moment(now());
    watcher.watching = true;
    watcher.budget.resume(time.ns);
    watcher.functions.begin_rows(time);
    watcher.windows.begin(time);
    begin_period(time);
    watcher.events->find(true);
    if (watcher.events->selective)
        begin_round(time);
    else
        open_window(time, false);
    plan(time.ns);
}

void write_all(bool last) {
    const Moment time = moment(now());
    for (size_t at = 0; at < watcher.functions.high(); ++at)
        if (watcher.functions.at(at)->code)
            watcher.functions.write(watcher.functions.at(at), time, last,
                                    watcher.budget.spent_ns());
}

void stop_watching() {
    const Moment time = moment(now());
    watcher.events->find(false);
    if (!watcher.events->selective) close_window(time);
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        if (!function->code) continue;
        if (watcher.events->selective) watcher.events->unwatch(const_cast<void*>(function->code));
        close_whole(function, time, End::other);
        watcher.functions.write(function, time, true, watcher.budget.spent_ns());
    }
    watcher.watching = false;
    watcher.next_round_ns.store(INT64_MAX);
}

bool prepare(const tg_api* api, const tg_offsets* offsets, const Options& options) {
    watcher.api = api;
    watcher.offsets = offsets;
    watcher.options = options;
    watcher.budget.start(options.budget, options.period_ns);
    watcher.rejects = SuccessiveRejects(options.top);
    watcher.choice = options.racing ? static_cast<Choice*>(&watcher.racing) : &watcher.rejects;
    watcher.functions.start(api, offsets);
    if (watcher.extra < 0) watcher.extra = tg_request_code_extra(freed);
    watcher.events = monitoring_events();
    if (!watcher.events) watcher.events = profile_events();
    if (watcher.extra < 0 || !watcher.events || !watcher.events->begin()) {
        api->count_loss(TG_LOSS_CALLS_UNAVAILABLE);
        return false;
    }
    watcher.random ^= static_cast<uint64_t>(now());
    measure_events();
    watcher.begun = true;
    return true;
}

// A call that is to be seen begins.
void note(Function* function, const void* frame, int64_t begun_ns) {
    ++function->seen;
    ++function->calls;
    ++function->interval_calls;
    if (function->quota > 0) --function->quota;
    const bool own_known = watcher.not_open == 0;
    if (own_known) ++function->own_begun;
    if (watcher.open_calls.push(
            {frame, function, function->epoch, own_known, true, watcher.closings, begun_ns, 0, 0}))
        ++function->open_calls;
}

void take(const Ended& ended) {
    Function& function = *ended.function;
    --function.open_calls;
    if (!ended.call.timed) return;
    function.total.add(ended.time_ns);
    function.arm.add(static_cast<double>(ended.time_ns));
    if (ended.call.own_known && ended.call.closings == watcher.closings)
        function.own.add(ended.time_ns - ended.call.callees_ns);
}

Further after_end(Function* function, bool found) {
    if (function->state == Watch::open) return Further::wanted;
    if (function->state == Watch::closing) {
        if (function->open_calls == 0) {
            function->state = Watch::closed;
        } else if (!found && ++function->strays > 4 * kFewCalls) {
            function->give_up();
            function->state = Watch::closed;
        }
    }
    return function->state == Watch::closed ? Further::unwanted : Further::wanted;
}

// An event at `begun_ns` is charged, also to the window that is open.
class Event {
  public:
    explicit Event(int64_t begun_ns) : charged_(&watcher.budget, begun_ns) {
        ++watcher.windows.events;
    }

  private:
    Charged charged_;
};

// An event of a call that goes on or ends. `does` gets its time, and says whether the call is
// known.
template <typename Does>
Further of_known(void* code, const Does& does) {
    if (!watcher.active()) return Further::wanted;
    const int64_t begun = now();
    const Event event(begun);
    Function* function = watcher.known(code);
    if (!function) return Further::unwanted;
    return after_end(function, does(begun));
}

}  // namespace

bool on() { return watcher.begun; }

bool begin(const tg_api* api, const tg_offsets* offsets, const Options& options) {
    if (watcher.begun || !prepare(api, offsets, options)) return false;
    resume_watching();
    return true;
}

void end() {
    if (!watcher.begun) return;
    if (watcher.watching) stop_watching();
    watcher.begun = false;
    watcher.next_round_ns.store(INT64_MAX);
    watcher.events->end();
}

void flush() {
    if (watcher.begun && watcher.watching) write_all(true);
}

void pause(bool yes) {
    if (!watcher.begun || yes != watcher.watching ||
        (!yes && watcher.only_loops && watcher.loops == 0))
        return;
    watcher.turning = true;
    if (yes) stop_watching();
    watcher.turning = false;
    if (!yes) resume_watching();
}

void after_fork_in_child(bool recorded) {
    if (!watcher.begun) return;
    watcher.open_calls.forget_other_threads();
    put_off();
    watcher.functions.begin_rows(moment(now()));
    if (!recorded) {
        watcher.watching = false;
        end();
    }
}

void loop(const tg_api* api, const tg_offsets* offsets, const Options& options, int step) {
    if (step > 0) {
        if (!watcher.begun && watcher.loops == 0 && watcher.events == nullptr) {
            if (!prepare(api, offsets, options)) return;
            watcher.only_loops = true;
        }
        if (!watcher.begun) return;
        ++watcher.loops;
        if (watcher.only_loops && watcher.loops == 1) pause(false);
    } else if (!watcher.begun) {
        return;
    } else if (step < 0) {
        if (--watcher.loops == 0 && watcher.only_loops) pause(true);
    } else if (watcher.active()) {
        pass(now());
    }
}

void thread_starts() {
    if (watcher.begun && watcher.windows.open && !watcher.turning) watcher.events->open_window();
}

Further discovered(void* code, const void* frame) {
    if (!watcher.active()) return Further::wanted;
    const int64_t begun = now();
    const Event event(begun);
    if (watcher.known(code)) return Further::unwanted;
    watcher.turning = true;
    Function* function = learn(code, frame, begun);
    if (function && watcher.events->selective) watcher.events->watch(code);
    watcher.turning = false;
    if (function) note(function, frame, now());
    return Further::unwanted;
}

Further started(void* code, const void* frame) {
    if (!watcher.active()) return Further::wanted;
    const int64_t begun = now();
    const Event event(begun);
    end_window(begun);
    pass(begun);
    if (!watcher.events->selective && !watcher.windows.open) return Further::unwanted;
    Function* function = watcher.known(code);
    if (!function && !watcher.events->selective) function = learn(code, frame, begun);
    if (!function || function->state != Watch::open) return Further::unwanted;
    if (watcher.events->selective && is_enough(function, begun)) return Further::unwanted;
    note(function, frame, now());
    return Further::wanted;
}

Further resumed(void* code, const void* frame) {
    return of_known(code,
                    [frame](int64_t begun) { return watcher.open_calls.resume(frame, begun); });
}

Further suspended(void* code, const void* frame) {
    return of_known(code, [frame](int64_t begun) {
        const Ended found = watcher.open_calls.pop(frame, begun);
        if (!found.function) return false;
        const Ended over = watcher.open_calls.suspend(found);
        if (over.function) take(over);
        return true;
    });
}

Further ended(void* code, const void* frame) {
    return of_known(code, [frame](int64_t begun) {
        const Ended found = watcher.open_calls.pop(frame, begun);
        if (found.function) take(found);
        return found.function != nullptr;
    });
}

void ignored() {
    watcher.budget.charge_entry();
    ++watcher.windows.events;
}

}  // namespace tachograph::calls

// Begins and ends watching, and takes the interpreter's events.
#include "calls/watching.h"

#include "calls/clock.h"
#include "calls/evaluated_frames.h"
#include "calls/events.h"
#include "calls/watcher.h"

#include <algorithm>

namespace tachograph::calls {

Watcher watcher;

void count_loss(uint32_t cause) { watcher.api->count_loss(cause); }

namespace {

// A code object is about to be freed.
void freed(void* extra) {
    auto* function = static_cast<Function*>(extra);
    if (!function || !function->code) return;
    const int64_t begun_cpu_ns = thread_cpu();
    settle_freed(function);
    if (watcher.begun && watcher.api->active()) write(function, moment(now()), true);
    if (function->state != Watch::open) --watcher.not_open;
    watcher.functions.remove(function);
    watcher.budget.charge_pause(static_cast<double>(thread_cpu() - begun_cpu_ns));
}

void resume_watching() {
    const Moment time = moment(now());
    watcher.watching = true;
    watcher.budget.resume(time, watcher.api->sampling_ns());
    watcher.functions.begin_rows(time, watcher.budget.spent_ns());
    watcher.windows.begin(time);
    forget_counting();
    forget_search(time);
    begin_period(time);
    // This moment was not drawn.
    watcher.stands_ns = 0;
    if (watcher.events->selective) {
        begin_search(time);
        begin_round(time);
    }
    if (watcher.counting.possible) begin_windows(time);
    watcher.budget.charge(static_cast<double>(watcher.starting_ns));
    watcher.starting_ns = 0;
    plan(time.ns);
}

void write_all(bool last) {
    const Moment time = moment(now());
    if (!watcher.events->selective) shut_window(time);
    if (watcher.counting.possible) end_counting(time);
    watcher.counting.writes.write(&watcher.functions, time, watcher.counting.all);
    for (size_t at = 0; at < watcher.functions.high(); ++at)
        if (watcher.functions.at(at)->code) write(watcher.functions.at(at), time, last);
}

void stop_watching() {
    const Moment time = moment(now());
    end_search(time);
    if (watcher.counting.possible) end_windows(time);
    for (size_t at = 0; at < watcher.functions.high(); ++at) {
        Function* function = watcher.functions.at(at);
        if (!function->code) continue;
        if (watcher.events->selective) watcher.events->unwatch(const_cast<void*>(function->code));
        close_whole(function, time);
        write(function, time, true);
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
    watcher.counting.possible = tg_can_evaluate_frames != 0;
    const bool has_table = watcher.functions.start(api, offsets);
    if (watcher.extra < 0) watcher.extra = tg_request_code_extra(freed);
    watcher.events = monitoring_events();
    if (!watcher.events) watcher.events = evaluation_events();
    if (!has_table || watcher.extra < 0 || !watcher.events || !watcher.events->begin()) {
        api->count_loss(TG_LOSS_CALLS_UNAVAILABLE);
        return false;
    }
    const int64_t begun_ns = thread_cpu();
    watcher.chance.state ^= static_cast<uint64_t>(now());
    measure_events();
    watcher.starting_ns = thread_cpu() - begun_ns;
    watcher.begun = true;
    return true;
}

// An event at `begun_ns` is charged, also to the window that is open.
class Event {
  public:
    explicit Event(int64_t begun_ns) : charged_(&watcher.budget, begun_ns) {
        ++watcher.windows.events;
    }
    double spent_by(int64_t now_ns) const { return charged_.spent_by(now_ns); }

  private:
    Charged charged_;
};

void open_call(Function* function, const void* frame, int64_t begun_ns, double watched_ns,
               bool counted, bool own_known) {
    if (watcher.open_calls.push({frame, function, function->epoch, counted, own_known, true,
                                 watcher.silences, begun_ns, watched_ns, 0, 0}))
        ++function->open_calls;
}

// A call that is to be seen begins.
void note(Function* function, const void* frame, int64_t begun_ns, double watched_ns) {
    if (function->seen++ == 0) list_arm(function);
    ++function->calls;
    if (watcher.windows.open && watcher.windows.counts) ++function->counted_calls;
    function->interval.count(begun_ns);
    if (function->quota > 0) --function->quota;
    // A window is one of all functions.
    const bool own_known = watcher.not_open == 0 || watcher.windows.open;
    if (own_known) ++function->own_begun;
    open_call(function, frame, begun_ns, watched_ns, true, own_known);
}

// A call of a function whose interval is over begins.
Further linger(Function* function, const void* frame, const Event& event) {
    if (function->lingers == 0 || watcher.budget.exhausted() ||
        !watcher.open_calls.wants_callees(watcher.silences)) {
        silence(function);
        return Further::unwanted;
    }
    --function->lingers;
    const int64_t begun = now();
    open_call(function, frame, begun, event.spent_by(begun), false, false);
    return Further::wanted;
}

// A call begins after the window: whether it is to be seen all the same.
bool window_lingers() {
    if (watcher.windows.lingers > 0 && !watcher.budget.exhausted() &&
        watcher.open_calls.wants_callees(watcher.silences)) {
        --watcher.windows.lingers;
        return true;
    }
    silence_window();
    return false;
}

void take(const Ended& ended) {
    Function& function = *ended.function;
    --function.open_calls;
    if (!ended.call.timed || !ended.call.counted) return;
    function.total.add(ended.time_ns);
    function.arm.add(static_cast<double>(ended.time_ns));
    if (ended.call.own_known && ended.call.silences == watcher.silences)
        function.own.add(ended.time_ns - ended.call.callees_ns);
}

// A call that goes on for ever has events for ever.
bool is_tired(Function* function) {
    if (!watcher.events->selective) return false;  // a window has an end
    if (function->steps > 0) --function->steps;
    return function->steps == 0;
}

// Its open calls are counted and never timed.
Further give_up(Function* function, int64_t now_ns) {
    for (uint32_t i = 0; i < function->open_calls; ++i) count_loss(TG_LOSS_CALLS_UNTIMED);
    close_whole(function, moment(now_ns));
    return Further::unwanted;
}

Further after_end(Function* function, bool found, int64_t now_ns) {
    if (is_tired(function) && function->state != Watch::closed) return give_up(function, now_ns);
    if (function->state == Watch::open || function->state == Watch::lingering)
        return Further::wanted;
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

// An event of a call that goes on or ends. `does` gets the time at which our code began and what
// watching had taken by then, and says whether the call is known.
template <typename Does>
Further of_known(void* code, const Does& does) {
    if (!watcher.active()) return Further::wanted;
    const int64_t begun = now();
    const Event event(begun);
    end_window(begun);
    Function* function = watcher.known(code);
    if (!function) return Further::unwanted;
    return after_end(function, does(begun, event.spent_by(begun)), begun);
}

// Exceptions have events in all functions, and these cannot be declined: in a program that raises
// them all the time (any() over a generator raises one) they are left alone when they have had
// their part of the budget.
void charge_exception() {
    if (!watcher.active()) return;
    watcher.exceptions_ns -= watcher.budget.event_ns();
    if (watcher.exceptions_ns > 0) return;
    watcher.turning = true;
    watcher.exceptions_ignored = true;
    watcher.events->exceptions(false);
    watcher.turning = false;
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
    const int64_t begun_cpu_ns = thread_cpu();
    watcher.turning = true;
    if (yes) {
        watcher.budget.earn(moment(now()), watcher.api->sampling_ns());
        stop_watching();
    }
    watcher.turning = false;
    if (!yes) resume_watching();
    watcher.budget.charge(static_cast<double>(thread_cpu() - begun_cpu_ns));
}

void after_fork_in_child(bool recorded) {
    if (!watcher.begun) return;
    watcher.open_calls.forget_other_threads();
    put_off();
    const Moment time = moment(now());
    if (!watcher.events->selective) shut_window(time);
    forget_windows();
    watcher.functions.begin_rows(time, watcher.budget.spent_ns());
    watcher.windows.begin(time);
    watcher.windows.first = false;
    forget_search(time);
    watcher.search.broken_off = !watcher.search.on;
    if (watcher.watching && watcher.counting.possible)
        watcher.counting.writes.begin(time, watcher.counting.all);
    if (!recorded) {
        watcher.watching = false;
        end();
    }
}

bool loop_begins(const tg_api* api) {
    if (api->active() == 0) return false;
    if (!watcher.begun && watcher.loops == 0 && watcher.events == nullptr) {
        if (!prepare(api, tg_offsets_of_runtime(), {})) return false;
        watcher.only_loops = true;
    }
    if (!watcher.begun) return false;
    if (watcher.only_loops && watcher.loops == 0) {
        watcher.budget.resume(moment(now()), watcher.api->sampling_ns());
        if (watcher.budget.credit_ns() <= 0) return false;
    }
    ++watcher.loops;
    if (watcher.only_loops && watcher.loops == 1) pause(false);
    return true;
}

void loop_goes_on() {
    if (watcher.asked_ns.load(std::memory_order_relaxed) != 0 && watcher.active()) pass(now());
}

void loop_ends() {
    if (!watcher.begun || watcher.api->active() == 0) return;
    if (--watcher.loops == 0 && watcher.only_loops) pause(true);
}

Further discovered(void* code, const void* frame) {
    if (!watcher.active()) return Further::wanted;
    watcher.budget.charge_event();
    if (!tg_is_function(code)) {
        // The interpreter has put an event into this code, and takes it out.
        watcher.budget.charge_pause(watcher.opening_ns);
        return Further::unwanted;
    }
    if (watcher.known(code)) return Further::unwanted;
    Function* function = find(code, frame, now());
    if (function) note(function, frame, now(), watcher.budget.spent_ns());
    return Further::unwanted;
}

Further started(void* code, const void* frame) {
    if (!watcher.active()) return Further::wanted;
    const int64_t begun = now();
    const Event event(begun);
    end_window(begun);
    pass(begun);
    const bool after_window = !watcher.events->selective && !watcher.windows.open;
    if (after_window && !window_lingers()) return Further::unwanted;
    Function* function = watcher.known(code);
    if (!function && watcher.windows.open && tg_is_function(code))
        function = learn(code, frame, begun);
    if (!watcher.events->selective && function) join_window(function);
    if (!function && after_window) silence_window();
    if (function && function->state == Watch::lingering) return linger(function, frame, event);
    if (!function || function->state != Watch::open) return Further::unwanted;
    const Enough enough = watcher.events->selective ? is_enough(function, begun) : Enough::no;
    const int64_t noted = now();
    note(function, frame, noted, event.spent_by(noted));
    if (enough == Enough::by_length) close_or_stay(function, moment(begun));
    if (enough == Enough::yes) close(function, moment(begun));
    return Further::wanted;
}

Further resumed(void* code, const void* frame) {
    return of_known(code, [frame](int64_t begun, double watched_ns) {
        return watcher.open_calls.resume(frame, begun, watched_ns);
    });
}

Further suspended(void* code, const void* frame) {
    return of_known(code, [frame](int64_t begun, double watched_ns) {
        const Ended found = watcher.open_calls.pop(frame, begun, watched_ns);
        if (!found.function) return false;
        const Ended over = watcher.open_calls.suspend(found);
        if (over.function) take(over);
        return true;
    });
}

Further ended(void* code, const void* frame) {
    return of_known(code, [frame](int64_t begun, double watched_ns) {
        const Ended found = watcher.open_calls.pop(frame, begun, watched_ns);
        if (found.function) take(found);
        return found.function != nullptr;
    });
}

Further thrown(void* code, const void* frame) {
    charge_exception();
    return resumed(code, frame);
}

Further unwound(void* code, const void* frame) {
    charge_exception();
    return ended(code, frame);
}

void declined() { watcher.budget.charge_event(); }

}  // namespace tachograph::calls

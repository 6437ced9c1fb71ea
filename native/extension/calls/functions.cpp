#include "calls/functions.h"

#include "codes.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cstring>

namespace tachograph::calls {
namespace {

constexpr uint8_t kCallsRecord = 27;
constexpr size_t kCallsBytes = 216;
constexpr uint8_t kTimesRecord = 28;
constexpr size_t kTimesBytes = 32;

// A function that is called on and on has a row after one second, then after two, and so on.
constexpr int64_t kFirstRowNs = 1'000'000'000;
constexpr int64_t kRareRowsNs = 8'000'000'000;

template <typename T>
void put(uint8_t* record, size_t offset, T value) {
    memcpy(record + offset, &value, sizeof value);
}

}  // namespace

constinit uint16_t Functions::s_free_places[kMostFunctions] = {};
constinit Function* Functions::s_functions = nullptr;

void Times::add(int64_t time_ns) {
    ++ended;
    // A call of nothing may seem to take less than watching it did. Sums hold it as it is: what is
    // taken off too much and too little makes up for each other.
    sum_ns += time_ns;
    const int64_t time = std::max<int64_t>(time_ns, 0);
    longest_ns = std::max(longest_ns, time);
    squared += static_cast<double>(time) * static_cast<double>(time);
    ++buckets[bucket_of(static_cast<uint64_t>(time))];
}

size_t Times::bucket_of(uint64_t time_ns) {
    const auto digits = static_cast<size_t>(std::bit_width(time_ns));
    if (digits > kDigits) return kBuckets - 1;
    // Of the leading one and the three digits after it.
    const uint64_t leading = digits > 4 ? time_ns >> (digits - 4) : time_ns << (4 - digits);
    return digits * kEighths + (leading & (kEighths - 1));
}

void Function::add_uncalled(const Uncalled& all) {
    watched_ns += all.ns - told.ns;
    watched_cpu_ns += all.cpu_ns - told.cpu_ns;
    drawn.add_later(all.drawn, told.drawn);
    told = all;
}

void Function::add_uncounted(const Uncalled& all) {
    if (!countable) return;
    counted_ns += all.ns - counted_until.ns;
    counted_cpu_ns += all.cpu_ns - counted_until.cpu_ns;
    drawn.add_later(all.drawn, counted_until.drawn);
    counted_until = all;
}

void Function::sample(Moment now, const Spent& spent) {
    interval.sample(now, spent.ns, spent.event_ns, &drawn);
    if (interval.goes_on) interval.due_ns = INT64_MAX;
}

void Function::end_interval(Moment now, const Spent& spent) {
    if (state != Watch::open) return;
    const int64_t passed = std::max<int64_t>(now.ns - interval.opened.ns, 0);
    const int64_t ran = std::max<int64_t>(now.cpu_ns - interval.opened.cpu_ns, 0);
    const double cost = std::max(spent.ns - interval.spent_ns, 0.0);
    watched_ns += passed;
    watched_cpu_ns += ran;
    sample(now, spent);
    pace.add(static_cast<double>(interval.calls), passed, ran, cost);
    // One that goes on has told of the time before it.
    interval.begin(now, 0, true, 0, spent.ns);
}

void Function::give_up() {
    ++epoch;
    open_calls = 0;
}

bool Functions::start(const tg_api* api, const tg_offsets* offsets) {
    api_ = api;
    offsets_ = offsets;
    if (s_functions) return true;
    // Past the hooks of mappings: it is none of the program's.
    const long mapped =
        syscall(SYS_mmap, 0L, kMostFunctions * sizeof(Function), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1L, 0L);
    if (mapped == -1) return false;
    s_functions = reinterpret_cast<Function*>(mapped);
    return true;
}

Function* Functions::add(const void* code, Moment now) {
    size_t place = 0;
    if (free_ > 0)
        place = s_free_places[--free_];
    else if (high_ < kMostFunctions)
        place = high_++;
    else
        return nullptr;
    Function& function = s_functions[place];
    const uint32_t epoch = function.epoch + 1;
    const bool listed = function.listed;
    const bool in_window = function.in_window;
    const bool in_counting = function.in_counting;
    function = Function{};
    function.listed = listed;
    function.in_window = in_window;
    function.in_counting = in_counting;
    function.countable = !tg_is_inlined_unseen(code);
    function.code = code;
    function.epoch = epoch;
    function.since = now;
    function.row_period_ns = kFirstRowNs;
    function.next_row_ns = now.ns + kFirstRowNs;
    return &function;
}

void Functions::remove(Function* function) {
    function->give_up();
    function->code = nullptr;
    s_free_places[free_++] = static_cast<uint16_t>(place(function));
}

void Functions::begin_rows(Moment now, double spent_ns) {
    for (size_t at = 0; at < high_; ++at) {
        Function& old = s_functions[at];
        if (!old.code) continue;
        Function fresh;
        fresh.code = old.code;
        fresh.state = old.state;
        fresh.epoch = old.epoch + 1;
        fresh.quota = old.quota;
        fresh.steps = old.steps;
        fresh.listed = old.listed;
        fresh.in_window = old.in_window;
        fresh.in_counting = old.in_counting;
        fresh.countable = old.countable;
        fresh.since = now;
        fresh.interval.begin(now, 0, true, 0, spent_ns);
        fresh.pace = old.pace;
        fresh.row_period_ns = kFirstRowNs;
        fresh.next_row_ns = now.ns + kFirstRowNs;
        old = fresh;
    }
}

void Functions::write(Function* function, Moment now, bool last, const Spent& spent) {
    // An interval that has a length is not cut: its calls are in the next row.
    if (function->state == Watch::open && (function->interval.goes_on || last))
        function->end_interval(now, spent);
    const int64_t seen_ns = std::max(function->watched_ns, function->counted_ns);
    const bool whole = seen_ns >= now.ns - function->since.ns;
    const bool called = function->calls > 0 || function->counted_calls > 0;
    if (!called && function->total.ended == 0 && (!last || whole)) return;
    size_t size = 0;
    void* scratch = api_->borrow_scratch(&size);  // it keeps the tables in place
    uint32_t stack = TG_NONE;
    if (scratch) {
        uint32_t code = TG_NONE;
        const Codes codes(api_, offsets_);
        const auto* object = static_cast<const uint8_t*>(function->code);
        if (codes.intern(object, nullptr, &code) && code != TG_NONE)
            stack = api_->intern_stack(TG_NONE, code, -1, nullptr, 1);
    }
    if (write_row(*function, stack, now)) {
        write_times(function->total, false, stack, now.ns);
        write_times(function->own, true, stack, now.ns);
    }
    if (scratch) api_->return_scratch(scratch);
    begin_next(function, now);
}

void Functions::begin_unnamed(Function* function, Moment now) {
    function->row_period_ns = kFirstRowNs;
    function->next_row_ns = now.ns + kFirstRowNs;
}

void Functions::write_unnamed(Function* function, Moment now) {
    write_row(*function, TG_NONE, now);
    begin_next(function, now);
}

void Functions::begin_next(Function* function, Moment now) {
    function->since = now;
    function->watched_ns = function->watched_cpu_ns = 0;
    function->drawn = Drawn{};
    function->calls = function->own_begun = 0;
    function->counted_ns = function->counted_cpu_ns = function->counted_calls = 0;
    function->total = function->own = Times{};
    function->row_period_ns = std::min(2 * function->row_period_ns, kRareRowsNs);
    function->next_row_ns = now.ns + function->row_period_ns;
}

void Functions::describe(const void* code, const void* frame) const {
    size_t size = 0;
    void* scratch = api_->borrow_scratch(&size);
    if (!scratch) return;
    uint32_t id = TG_NONE;
    const Codes codes(api_, offsets_);
    codes.intern(static_cast<const uint8_t*>(code), static_cast<const uint8_t*>(frame), &id);
    api_->return_scratch(scratch);
}

bool Functions::write_row(const Function& function, uint32_t stack, Moment now) const {
    uint64_t ticket = 0;
    uint8_t* record = api_->reserve(kCallsRecord, kCallsBytes, &ticket);
    if (!record) return false;
    put(record, 8, now.ns);
    put(record, 16, function.since.ns);
    put(record, 24, function.watched_ns);
    put(record, 32, function.calls);
    put(record, 40, function.total.ended);
    put(record, 48, std::max<int64_t>(function.total.sum_ns, 0));
    put(record, 56, function.total.longest_ns);
    put(record, 64, function.own_begun);
    put(record, 72, function.own.ended);
    put(record, 80, std::max<int64_t>(function.own.sum_ns, 0));
    put(record, 88, function.own.longest_ns);
    put(record, 96, std::max<int64_t>(now.cpu_ns - function.since.cpu_ns, 0));
    put(record, 104, function.watched_cpu_ns);
    put(record, 112, static_cast<int64_t>(function.drawn.ns));
    put(record, 120, function.total.squared);
    put(record, 128, function.own.squared);
    put(record, 136, function.drawn.calls);
    put(record, 144, function.drawn.cost_calls);
    put(record, 152, function.drawn.chance);
    put(record, 160, function.drawn.calls_squared);
    put(record, 168, function.drawn.calls_ns);
    put(record, 176, function.drawn.ns_squared);
    put(record, 184, stack);
    put(record, 188, function.drawn.intervals);
    put(record, 192, function.counted_ns);
    put(record, 200, function.counted_cpu_ns);
    put(record, 208, function.counted_calls);
    api_->commit(record, ticket, 1);
    return true;
}

void Functions::write_times(const Times& times, bool own, uint32_t stack, int64_t now_ns) const {
    for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
        if (times.buckets[bucket] == 0) continue;
        uint64_t ticket = 0;
        uint8_t* record = api_->reserve(kTimesRecord, kTimesBytes, &ticket);
        if (!record) return;
        put(record, 8, now_ns);
        put(record, 16, static_cast<int64_t>(times.buckets[bucket]));
        put(record, 24, stack);
        put(record, 28, static_cast<uint8_t>(own ? 1 : 0));
        put(record, 29, static_cast<uint8_t>(bucket / kEighths));
        put(record, 30, static_cast<uint8_t>(bucket % kEighths + 1));
        api_->commit(record, ticket, 1);
    }
}

}  // namespace tachograph::calls

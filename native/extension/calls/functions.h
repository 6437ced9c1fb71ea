// The functions whose calls are watched, what is known of their calls, and the rows of it.
//
// All of this is used with the GIL held. The table is of a fixed size, and nothing is allocated.
#pragma once

#include "calls/choice.h"
#include "calls/clock.h"
#include "calls/sample.h"
#include "compat.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::calls {

inline constexpr size_t kMostFunctions = 4096;
// Buckets are eighths of powers of two. 2^47 ns are 39 hours; what is longer is in the last.
inline constexpr size_t kEighths = 8;
inline constexpr size_t kDigits = 47;
inline constexpr size_t kBuckets = (kDigits + 1) * kEighths;

// Calls that have ended.
struct Times {
    int64_t ended = 0;
    int64_t sum_ns = 0;
    int64_t longest_ns = 0;
    double squared = 0;
    uint32_t buckets[kBuckets] = {};

    void add(int64_t time_ns);

  private:
    static size_t bucket_of(uint64_t time_ns);
};

enum class Watch : uint8_t {
    open,       // beginnings of calls are seen
    lingering,  // they are still seen, for the own times of those that call it, and not counted
    closing,    // not any more, but the ends of open calls are
    closed,
};

// What watching has taken until now, and takes by event: while it takes time the program stands
// still.
struct Spent {
    double ns = 0;
    double event_ns = 0;
};

// Windows in which a function was watched, and not called.
struct Uncalled {
    int64_t ns = 0;
    int64_t cpu_ns = 0;
    Drawn drawn;
};

// What a counted call reads and writes is in one line of the cache, the first: in a program that
// needs the cache for itself each further line is what an event takes most time for.
struct alignas(64) Function {
    const void* code = nullptr;  // nullptr: the place is free
    uint64_t uncounted = 0;      // of windows of counting: calls that are not settled
    double early = 0;            // what they count for beyond others, soon after another window
    bool in_counting = false;    // called since calls in a window of counting were last settled
    bool countable = true;       // its calls are all seen in a window of counting
    Watch state = Watch::closed;
    // Changes whenever the ends of its open calls will not be seen: they are then given up.
    uint32_t epoch = 0;
    uint32_t open_calls = 0;
    uint32_t strays = 0;     // ends of calls that were not seen to begin, while closing
    uint32_t lingers = 0;    // calls that may still be seen while lingering
    uint64_t quota = 0;      // calls that are still to be seen in the interval
    uint64_t steps = 0;      // and other events: a generator goes on for as long as it likes
    uint64_t seen = 0;       // in this period
    bool listed = false;     // among the arms of this period
    bool in_window = false;  // called since the last window began
    Arm arm;
    Pace pace;

    // Of the row that is being collected.
    Moment since;
    int64_t watched_ns = 0;
    int64_t watched_cpu_ns = 0;
    int64_t calls = 0;
    int64_t own_begun = 0;
    Drawn drawn;
    Times total;
    Times own;

    Interval interval;           // that is open
    int64_t closed_ns = kNever;  // when the last one ended
    double stayed = 0;           // -log(1 - the chance that another one had begun then)
    Uncalled told;               // of all windows, what is in this row or was in another

    // Windows of counting.
    int64_t counted_ns = 0;
    int64_t counted_cpu_ns = 0;
    int64_t counted_calls = 0;
    Uncalled counted_until;  // as `told`

    int64_t next_row_ns = 0;
    int64_t row_period_ns = 0;

    // Further windows, of which `all` is the sum.
    void add_uncalled(const Uncalled& all);
    void add_uncounted(const Uncalled& all);
    // The interval is over, if there is one.
    void end_interval(Moment now, const Spent& spent);
    void sample(Moment now, const Spent& spent);
    // The ends of its open calls will not be seen.
    void give_up();
};

static_assert(offsetof(Function, countable) < 64);

class Functions {
  public:
    // Place of a new function; nullptr if there is none.
    Function* add(const void* code, Moment now);
    void remove(Function* function);
    Function* at(size_t place) { return &s_functions[place]; }
    size_t place(const Function* function) const {
        return static_cast<size_t>(function - s_functions);
    }
    // All places that were ever used.
    size_t high() const { return high_; }

    // Writes the row of a function and begins the next one; nothing if there is nothing to say.
    void write(Function* function, Moment now, bool last, const Spent& spent);
    // The same of what happens all the time, and is no call of a function that has a name.
    static void begin_unnamed(Function* function, Moment now);
    void write_unnamed(Function* function, Moment now);
    // Writes down what `code` is, while `frame` runs it: later there may be no frame to ask.
    void describe(const void* code, const void* frame) const;
    // The rows begin here. False: there is no memory for the table.
    bool start(const tg_api* api, const tg_offsets* offsets);
    // All that was collected is of another process, or of another time.
    void begin_rows(Moment now, double spent_ns);

  private:
    static void begin_next(Function* function, Moment now);
    bool write_row(const Function& function, uint32_t stack, Moment now) const;
    void write_times(const Times& times, bool own, uint32_t stack, int64_t now_ns) const;

    const tg_api* api_ = nullptr;
    const tg_offsets* offsets_ = nullptr;
    size_t high_ = 0;
    size_t free_ = 0;
    static uint16_t s_free_places[kMostFunctions];
    // A mapping of its own, all zero at first: programs whose calls are not counted do without,
    // also where all memory is locked.
    static Function* s_functions;
};

}  // namespace tachograph::calls

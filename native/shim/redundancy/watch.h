// One sampled access and what becomes of it: from the sample, over the traps of the bytes that it
// accessed, to its row of the table `redundancies`.
#pragma once

#include "redundancy/block_content.h"
#include "redundancy/operands.h"
#include "redundancy/watchpoint.h"
#include "spool/layout.h"

#include <atomic>
#include <cstdint>

namespace tachograph::redundancy {

// What a row tells of where and when an access was: of the sample, or of the one that trapped.
struct Place {
    int64_t time_ns = 0;
    uint64_t pc = 0;
    uint32_t stack = kNone;
    uint32_t native_stack = 0;
    uint32_t opcode = kNone;
    uint8_t width = 0;
    uint8_t stack_state = 0;
    uint8_t native_path = 0;
};

// In the place of an access, where there is none.
inline constexpr uint8_t kNoAccess = 255;

// Whether the Python frame of the sample has gone on since.
enum class Crossed : uint8_t { no, yes, unknown };

enum class State : uint32_t {
    free,
    armed,
    handled,  // its thread is in a handler of ours, or its row is being written
};

struct Watch {
    std::atomic<State> state{State::free};
    Watchpoint watchpoint;
    uint64_t address = 0;  // of what is watched, `size` bytes
    uint32_t size = 0;
    Access kind = Access::load;
    operands::Access access;
    Place sampled;
    int64_t cpu_ns = 0;
    uint32_t thread = kNone;
    bool begun = false;     // the sampled access itself has trapped
    uint64_t value = 0;     // right after it
    uint64_t latest = 0;    // after the last trap
    uint32_t strays = 0;    // traps that say nothing
    uint32_t stores = 0;    // between the two loads
    uint32_t survived = 0;  // samples since its own one, and 1
    uint64_t frame = 0;     // where its Python frame keeps its instruction; 0: not known
    bool rested = false;    // its own call has accessed the bytes again
    bool resting = false;   // nothing traps until that call is over
    std::atomic<Crossed> crossed{Crossed::unknown};
};

// Takes an armed watch out of the traps' way, for the caller alone to end. False if it is not there
// any more, or is another's at this moment.
template <typename Claimed>
bool claim(Claimed* watch, State expected = State::armed) {
    return watch->state.compare_exchange_strong(expected, State::handled,
                                                std::memory_order_acq_rel);
}

// Writes the row of a claimed watch, which is free then. `partner`, `equal`: of the access that has
// trapped, if `outcome` is `pair`.
void end(Watch* watch, Outcome outcome, const Place* partner = nullptr, bool equal = false);

// The block that held what was watched, which is given back, and what is known of the next ones.
struct Released {
    uint64_t address = 0;
    uint64_t size = 0;
    block_content::Content content;
    uint32_t looks = 0;  // at later blocks of this size in the same place
    bool again = false;  // one of them held the same
};

// A watch whose memory has been given back. Its row waits until one of the next blocks in the same
// place has held the same, or so many have not.
struct Followed {
    std::atomic<State> state{State::free};
    Watch watch;
    Released released;
};

// Writes the row of a claimed watch, which is free then: its memory is given back.
void end_released(Watch* watch, const Released& released);
// Moves a claimed watch, which is free then, to a place that the caller has claimed.
void follow(Watch* watch, const Released& released, Followed* followed);
// Writes the row of a claimed one, which is free then.
void end(Followed* followed);

// The row of a sample that was not watched.
void write_unwatched(const Watch& sample, Outcome outcome);

}  // namespace tachograph::redundancy

// Walks CPython's frames through guarded reads: in a signal handler for the thread that was
// interrupted, or from the helper thread for one that does not run.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph {

using RawFrame = tg_frame;

// How many frames were collected; `state` says whether they are all there.
struct Frames {
    size_t count;
    uint8_t state;
    uint8_t opcode;
    bool generators;  // some are a generator's or a coroutine's
};

// Activations of the evaluation loop as they are met, the innermost first.
struct Activations {
    tg_activation* found = nullptr;
    uint32_t room = 0;
    uint32_t count = 0;

    void add(const uint8_t* address, size_t innermost) {
        if (count < room) found[count++] = {address, TG_NONE, static_cast<uint32_t>(innermost)};
    }
};

// Whether a thread that is walked from outside has stood still so far; no question for one's own.
struct Stands {
    int (*function)(void* context) = nullptr;
    void* context = nullptr;
    bool twice = false;  // it may be running: its stack is read a second time
    bool still() const { return !function || function(context) != 0; }
};

class Walker {
  public:
    Walker(const tg_api* api, const tg_offsets* offsets, const void* code_type)
        : api_(api), at_(offsets), code_type_(code_type) {}

    void self(tg_walk* out) const;
    // Whether a futex is the GIL of the interpreter that a thread's state belongs to.
    bool is_gil(const void* tstate, const void* address) const;
    void other(pid_t tid, void** hint, const Stands& stands, tg_walk* out) const;

    bool position(tg_position* out) const;
    // As tg_walk has it, of a state that holds the GIL.
    uint8_t collecting(const uint8_t* tstate) const;
    // As tg_walker has them.
    uint64_t progress() const;
    bool is_header(uint64_t address, uint64_t size) const;

    // Leaf first.
    Frames collect(const uint8_t* tstate, RawFrame* frames, size_t most,
                   Activations* activations = nullptr) const;

  private:
    class Chunks;
    void walk(const uint8_t* tstate, const Stands& stands, tg_walk* out) const;
    bool same_again(const uint8_t* tstate, const RawFrame* frames, const Frames& found,
                    RawFrame* room, size_t most) const;
    void intern(tg_path path, tg_walk* out) const;
    bool innermost(const uint8_t* tstate, const uint8_t** frame) const;
    bool hidden(const uint8_t* code, int64_t units) const;
    void find_cframes(const uint8_t* tstate, const RawFrame* frames, size_t count,
                      Activations* activations) const;
    const uint8_t* find_thread_state(pid_t tid) const;
    const uint8_t* own(int* attached) const;
    bool is_type(uint64_t address) const;
    bool belongs(const uint8_t* tstate, pid_t tid) const;

    const tg_api* api_;
    const tg_offsets* at_;
    const void* code_type_;
};

}  // namespace tachograph

// The tasks of trio: where its runners keep them, and what they say of themselves. Trio is written
// in Python, so its classes say themselves where their objects keep what: any version that has
// these names is read.
#pragma once

#include "compat.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph {

using RawFrame = tg_frame;

class Trio {
  public:
    Trio(const tg_api* api, const tg_offsets* offsets) : api_(api), at_(offsets) {}

    struct Task {
        const uint8_t* object;
        const uint8_t* coroutine;
        const uint8_t* name;
        const uint8_t* context;
        const uint8_t* nursery;  // that it was started in
    };
    // A run of trio: one per thread at most.
    struct Run {
        const uint8_t* tasks;  // a set
        const uint8_t* root;   // the task that trio makes itself, above the program's first
        const uint8_t* main;
        const uint8_t* system_nursery;
    };
    static constexpr size_t kMostRuns = 64;
    struct Runs {
        Run run[kMostRuns];
        size_t count;
        bool imported;
        // Trio is imported, and is not as it is expected to be. It may be in the making.
        bool unreadable;
    };

    void find_runs(Runs* runs) const;
    // The task whose coroutine is among a thread's frames, and which frame that is.
    bool find_running(const RawFrame* frames, size_t count, Task* task, size_t* frame) const;
    // False if it is no task of trio's.
    bool read_task(const uint8_t* object, Task* task) const;
    // Whether trio made it for a purpose of its own, and no code of the program runs in it.
    bool is_own(const Run& run, const Task& task) const;
    // The task that waits for its nursery to be left by all; NULL if it does not.
    const uint8_t* awaiter_of(const Run& run, const Task& task) const;

  private:
    struct Slots;
    const uint8_t* contexts() const;
    const uint8_t* slot(const uint8_t* type, const uint8_t* object, const char* name) const;
    const uint8_t* attribute(const uint8_t* object, const char* name) const;
    bool read_run(const uint8_t* runner, Run* run) const;
    bool find_slots(const uint8_t* type, Slots* slots) const;

    const tg_api* api_;
    const tg_offsets* at_;
};

}  // namespace tachograph

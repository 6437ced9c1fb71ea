// Which task of asyncio or trio a stack belongs to, and what the program calls it.
#pragma once

#include "compat.h"
#include "tachograph/api.h"
#include "trio.h"

#include <cstddef>
#include <cstdint>

namespace tachograph {

// The name of a task as it was read, and which of the frames is that of its coroutine.
struct TaskName {
    static constexpr size_t kMostCharacters = 128;
    size_t frame;
    uint32_t length;
    uint8_t width;
    uint8_t data[4 * kMostCharacters];
};

class Tasks {
  public:
    Tasks(const tg_api* api, const tg_offsets* offsets)
        : api_(api), at_(offsets), trio_(api, offsets) {}

    // False if none of a thread's frames belongs to a task with a name that the program gave it. A
    // task counts as running there only if the coroutine that it was made of is among the frames.
    bool find(const uint8_t* tstate, const RawFrame* frames, size_t count, TaskName* name) const;

    // The names of the main interpreter's module _asyncio; NULL if it was not imported.
    const uint8_t* module_names() const;
    // Whether an object is a task or, for the other, a future of asyncio's own or of a class made
    // of it. One that is written in Python keeps its coroutine elsewhere, and other things here.
    bool is_task(const uint8_t* object) const;
    bool is_future(const uint8_t* object) const;
    // The name of a task of asyncio; false where the program gave none.
    bool read_name(const uint8_t* string, TaskName* name) const;
    // Any name, as tasks of trio have it: each has one, of its function where the program gave
    // none.
    bool read_text(const uint8_t* string, TaskName* name) const;

  private:
    // The task that runs, its name, and which frame is that of its coroutine.
    struct Task {
        const uint8_t* object;
        const uint8_t* name;
        size_t frame;
    };
    bool in_thread_state(const uint8_t* tstate, const RawFrame* frames, size_t count,
                         Task* found) const;
    bool in_current_tasks(const uint8_t* tstate, const RawFrame* frames, size_t count,
                          Task* found) const;
    const uint8_t* current_tasks(const uint8_t* tstate) const;
    bool belongs(const uint8_t* task, const RawFrame* frames, size_t count, Task* found) const;
    bool is_made_of(const uint8_t* object, const char* name, size_t size) const;

    const tg_api* api_;
    const tg_offsets* at_;
    Trio trio_;
};

}  // namespace tachograph

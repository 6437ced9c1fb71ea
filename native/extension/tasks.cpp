#include "tasks.h"

#include "dicts.h"
#include "modules.h"
#include "reading.h"
#include "walker.h"

#include <Python.h>

#include <atomic>

namespace tachograph {
namespace {

constexpr size_t kMostLoops = 256;
constexpr size_t kMostBases = 16;
constexpr char kTaskType[] = "_asyncio.Task";
constexpr char kFutureType[] = "_asyncio.Future";
constexpr char kOwnNames[] = "Task-";  // CPython gives each task one of these and a number
constexpr size_t kOwnPrefix = sizeof kOwnNames - 1;

constinit ModuleSearch g_module{"_asyncio"};
// Up to 3.13: the dict {loop: task} of the tasks that run, once it was found.
std::atomic<const uint8_t*> g_current{nullptr};

bool is_own(const TaskName& name) {
    if (name.width != 1 || name.length <= kOwnPrefix ||
        memcmp(name.data, kOwnNames, kOwnPrefix) != 0)
        return false;
    for (size_t i = kOwnPrefix; i < name.length; ++i)
        if (name.data[i] < '0' || name.data[i] > '9') return false;
    return true;
}

}  // namespace

bool Tasks::find(const uint8_t* tstate, const RawFrame* frames, size_t count,
                 TaskName* name) const {
    Task task{};
    Trio::Task of_trio{};
    if (at_->tstate_task != 0 ? in_thread_state(tstate, frames, count, &task)
                              : in_current_tasks(tstate, frames, count, &task)) {
        name->frame = task.frame;
        return is_task(task.object) && read_name(task.name, name);
    }
    return trio_.find_running(frames, count, &of_trio, &name->frame) &&
           read_text(of_trio.name, name);
}

bool Tasks::in_thread_state(const uint8_t* tstate, const RawFrame* frames, size_t count,
                            Task* found) const {
    const uint8_t* task = nullptr;
    return load(api_, tstate, at_->tstate_task, &task) && belongs(task, frames, count, found);
}

bool Tasks::in_current_tasks(const uint8_t* tstate, const RawFrame* frames, size_t count,
                             Task* found) const {
    const uint8_t* running = current_tasks(tstate);
    if (!running) return false;
    const Dict dict(api_, at_, running);
    for (size_t place = 0; place < dict.size() && place < kMostLoops; ++place) {
        Dict::Entry entry{};
        if (dict.entry(place, &entry) && belongs(entry.value, frames, count, found)) return true;
    }
    // The module may have been loaded anew, with another dict.
    g_current.store(nullptr, std::memory_order_relaxed);
    return false;
}

const uint8_t* Tasks::current_tasks(const uint8_t* tstate) const {
    const auto* runtime = static_cast<const uint8_t*>(tg_runtime());
    const uint8_t* interpreter = nullptr;
    const uint8_t* main = nullptr;
    if (!load(api_, tstate, at_->tstate_interpreter, &interpreter) ||
        !load(api_, runtime, at_->runtime_main, &main) || interpreter != main)
        return nullptr;
    if (const uint8_t* known = g_current.load(std::memory_order_relaxed)) return known;
    const uint8_t* names = module_names();
    if (!names) return nullptr;
    size_t first = 0;
    const uint8_t* current = Dict(api_, at_, names).find("_current_tasks", &first);
    if (current) g_current.store(current, std::memory_order_relaxed);
    return current;
}

const uint8_t* Tasks::module_names() const { return g_module.names(api_, at_); }

bool Tasks::belongs(const uint8_t* task, const RawFrame* frames, size_t count, Task* found) const {
    const uint8_t* fields[2];  // task_coro, task_name
    if (!plausible(task) || !api_->read(fields, task + at_->task_coroutine, sizeof fields))
        return false;
    const uint8_t* frame = fields[0] + at_->coroutine_frame;
    size_t place = count;
    while (place > 0 && frames[place - 1].frame != frame) --place;
    if (place == 0) return false;
    *found = {task, fields[1], place - 1};
    return true;
}

bool Tasks::is_task(const uint8_t* object) const {
    return is_made_of(object, kTaskType, sizeof kTaskType);
}

bool Tasks::is_future(const uint8_t* object) const {
    return is_made_of(object, kFutureType, sizeof kFutureType) || is_task(object);
}

bool Tasks::is_made_of(const uint8_t* object, const char* name, size_t size) const {
    const uint8_t* type = nullptr;
    if (!load(api_, object, at_->object_type, &type)) return false;
    for (size_t i = 0; i < kMostBases && plausible(type); ++i) {
        const uint8_t* text = nullptr;
        char copy[sizeof kFutureType];
        if (!load(api_, type, at_->type_name, &text) || !api_->read(copy, text, size)) return false;
        if (memcmp(copy, name, size) == 0) return true;
        if (!load(api_, type, at_->type_base, &type)) return false;
    }
    return false;
}

// Since 3.13 the name is a number until the program asks for it.
bool Tasks::read_name(const uint8_t* string, TaskName* name) const {
    return read_text(string, name) && !is_own(*name);
}

bool Tasks::read_text(const uint8_t* string, TaskName* name) const {
    const void* type = nullptr;
    Text text;
    if (!plausible(string) || !load(api_, string, at_->object_type, &type) ||
        type != &PyUnicode_Type || !find_text(api_, string, TaskName::kMostCharacters, &text) ||
        text.shape.length == 0 || !api_->read(name->data, text.data, text.bytes()))
        return false;
    name->length = static_cast<uint32_t>(text.shape.length);
    name->width = static_cast<uint8_t>(text.shape.width);
    return true;
}

}  // namespace tachograph

#include "trio.h"

#include "dicts.h"
#include "modules.h"
#include "reading.h"

#include <Python.h>

#include <atomic>

namespace tachograph {
namespace {

constexpr size_t kMostThreads = 1024;  // that have run trio
constexpr size_t kLocalWords = 8;      // of a threading.local, behind its header
constexpr char kTask[] = "Task";

constinit ModuleSearch g_module{"trio._core._run"};
constinit ModuleSearch g_package{"trio"};

// The values of a threading.local by thread, {thread: dict}, once they were found.
std::atomic<const uint8_t*> g_contexts{nullptr};

bool is_dict(const tg_api* api, const tg_offsets* at, const uint8_t* object) {
    const void* type = nullptr;
    return plausible(object) && load(api, object, at->object_type, &type) && type == &PyDict_Type;
}

}  // namespace

// Where its objects keep these: written once, before `type`, whose class does not change later.
struct Trio::Slots {
    size_t coroutine, name, context, nursery;
};

namespace {

struct KnownTask {
    std::atomic<const uint8_t*> type{nullptr};
    std::atomic<uint32_t> offsets[4]{};
};
constinit KnownTask g_task;

}  // namespace

// A threading.local has the values of all threads in a dict, whose place among its fields is
// another one since 3.13.
const uint8_t* Trio::contexts() const {
    if (const uint8_t* known = g_contexts.load(std::memory_order_relaxed)) return known;
    const uint8_t* names = g_module.names(api_, at_);
    if (!names) return nullptr;
    const uint8_t* local = Dict(api_, at_, names).find("GLOBAL_RUN_CONTEXT");
    const uint8_t* words[kLocalWords];
    if (!plausible(local) || !api_->read(words, local + sizeof(PyObject), sizeof words))
        return nullptr;
    for (const uint8_t* word : words) {
        if (!is_dict(api_, at_, word)) continue;
        g_contexts.store(word, std::memory_order_relaxed);
        return word;
    }
    return nullptr;
}

void Trio::find_runs(Runs* runs) const {
    runs->count = 0;
    runs->unreadable = false;
    const uint8_t* contexts_dict = contexts();
    runs->imported = contexts_dict != nullptr;
    if (!contexts_dict) {
        runs->unreadable = g_package.names(api_, at_) != nullptr;
        return;
    }
    const Dict threads(api_, at_, contexts_dict);
    if (!threads.readable()) {
        g_contexts.store(nullptr, std::memory_order_relaxed);  // the module was loaded anew
        return;
    }
    for (size_t i = 0; i < threads.size() && i < kMostThreads && runs->count < kMostRuns; ++i) {
        Dict::Entry thread{};
        if (!threads.entry(i, &thread) || !is_dict(api_, at_, thread.value)) continue;
        const Dict values(api_, at_, thread.value);
        const uint8_t* runner = values.find("runner");
        if (!runner && !values.find("task")) continue;
        if (runner && read_run(runner, &runs->run[runs->count]))
            ++runs->count;
        else
            runs->unreadable = true;
    }
}

bool Trio::read_run(const uint8_t* runner, Run* run) const {
    const uint8_t* type = nullptr;
    const void* kind = nullptr;
    if (!plausible(runner) || !load(api_, runner, at_->object_type, &type)) return false;
    run->tasks = slot(type, runner, "tasks");
    run->root = slot(type, runner, "init_task");
    run->main = slot(type, runner, "main_task");
    run->system_nursery = slot(type, runner, "system_nursery");
    return plausible(run->tasks) && load(api_, run->tasks, at_->object_type, &kind) &&
           kind == &PySet_Type && run->root && run->main && run->system_nursery;
}

bool Trio::find_running(const RawFrame* frames, size_t count, Task* task, size_t* frame) const {
    const uint8_t* contexts_dict = contexts();
    if (!contexts_dict) return false;
    const Dict threads(api_, at_, contexts_dict);
    for (size_t i = 0; i < threads.size() && i < kMostThreads; ++i) {
        Dict::Entry thread{};
        if (!threads.entry(i, &thread) || !is_dict(api_, at_, thread.value)) continue;
        const uint8_t* running = Dict(api_, at_, thread.value).find("task");
        if (!running || !read_task(running, task)) continue;
        size_t place = count;
        while (place > 0 && frames[place - 1].frame != task->coroutine + at_->coroutine_frame)
            --place;
        if (place == 0) continue;
        *frame = place - 1;
        return true;
    }
    return false;
}

// What a class with `__slots__` keeps under a name; NULL if it has no such slot.
const uint8_t* Trio::slot(const uint8_t* type, const uint8_t* object, const char* name) const {
    const uint8_t* dict = nullptr;
    const uint8_t* value = nullptr;
    if (!plausible(type) || !load(api_, type, at_->type_dict, &dict)) return nullptr;
    const uint8_t* descriptor = Dict(api_, at_, dict).find(name);
    const size_t offset = plausible(descriptor) ? tg_slot_offset(descriptor, api_->read) : 0;
    return offset != 0 && load(api_, object, offset, &value) ? value : nullptr;
}

bool Trio::find_slots(const uint8_t* type, Slots* slots) const {
    const uint8_t* dict = nullptr;
    const uint8_t* text = nullptr;
    char name[sizeof kTask];
    if (type == g_task.type.load(std::memory_order_acquire)) {
        *slots = {g_task.offsets[0].load(std::memory_order_relaxed),
                  g_task.offsets[1].load(std::memory_order_relaxed),
                  g_task.offsets[2].load(std::memory_order_relaxed),
                  g_task.offsets[3].load(std::memory_order_relaxed)};
        return true;
    }
    if (!plausible(type) || !load(api_, type, at_->type_name, &text) ||
        !api_->read(name, text, sizeof name) || memcmp(name, kTask, sizeof name) != 0 ||
        !load(api_, type, at_->type_dict, &dict))
        return false;
    const Dict names(api_, at_, dict);
    constexpr const char* kNames[] = {"coro", "name", "context", "_parent_nursery"};
    size_t offsets[4];
    for (size_t i = 0; i < 4; ++i) {
        const uint8_t* descriptor = names.find(kNames[i]);
        offsets[i] = plausible(descriptor) ? tg_slot_offset(descriptor, api_->read) : 0;
        if (offsets[i] == 0 || offsets[i] > UINT32_MAX) return false;
    }
    *slots = {offsets[0], offsets[1], offsets[2], offsets[3]};
    const uint8_t* none = nullptr;
    static std::atomic<bool> taken{false};
    if (!taken.exchange(true, std::memory_order_relaxed)) {
        for (size_t i = 0; i < 4; ++i)
            g_task.offsets[i].store(static_cast<uint32_t>(offsets[i]), std::memory_order_relaxed);
        g_task.type.compare_exchange_strong(none, type, std::memory_order_release);
    }
    return true;
}

bool Trio::read_task(const uint8_t* object, Task* task) const {
    const uint8_t* type = nullptr;
    Slots at{};
    task->object = object;
    return plausible(object) && load(api_, object, at_->object_type, &type) &&
           find_slots(type, &at) && load(api_, object, at.coroutine, &task->coroutine) &&
           load(api_, object, at.name, &task->name) &&
           load(api_, object, at.context, &task->context) &&
           load(api_, object, at.nursery, &task->nursery) && plausible(task->coroutine);
}

const uint8_t* Trio::attribute(const uint8_t* object, const char* name) const {
    const uint8_t* type = nullptr;
    const uint8_t* value = nullptr;
    if (!plausible(object) || !load(api_, object, at_->object_type, &type)) return nullptr;
    if (const uint8_t* values = tg_attribute_values(object, api_->read)) {
        const Dict names = Dict::of_attributes(api_, at_, type);
        const size_t place = names.place_of(name);
        return place < names.size() && load(api_, values, place * sizeof(void*), &value) ? value
                                                                                         : nullptr;
    }
    const uint8_t* dict = nullptr;  // one that was asked for as a whole
    if (!load(api_, object - 3 * sizeof(void*), 0, &dict)) return nullptr;
    return Dict(api_, at_, dict).find(name);
}

bool Trio::is_own(const Run& run, const Task& task) const {
    if (task.object == run.root) return true;
    return task.object != run.main && task.nursery != run.system_nursery &&
           attribute(task.nursery, "_parent_task") == run.root;
}

const uint8_t* Trio::awaiter_of(const Run& run, const Task& task) const {
    if (attribute(task.nursery, "_parent_waiting_in_aexit") !=
        reinterpret_cast<const uint8_t*>(Py_True))
        return nullptr;
    const uint8_t* parent = attribute(task.nursery, "_parent_task");
    return parent != run.root ? parent : nullptr;
}

}  // namespace tachograph

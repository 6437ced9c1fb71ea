#include "census.h"

#include "codes.h"
#include "current_span.h"
#include "dicts.h"
#include "reading.h"
#include "tachograph/mixing.h"
#include "tasks.h"
#include "trio.h"

#include <Python.h>

#include <ctime>

namespace tachograph {
namespace {

constexpr size_t kWanted = 32;      // tasks that a census looks at, on average
constexpr size_t kMostTasks = 256;  // that it has room for
constexpr size_t kBlock = 16;       // places of the set that are read at once
constexpr size_t kMostBlocks = 2048;
constexpr size_t kMostPlaces = size_t{1} << 26;
constexpr size_t kMostSteps = 1 << 17;  // along a list
constexpr size_t kMostFrames = 1024;
constexpr size_t kFrameCopy = 128;
constexpr int kMostCallbacks = 3;
constexpr size_t kMostCells = 16;
constexpr size_t kAttributes = 16;

// For types that have no symbol that an extension may use.
bool is_type_named(const tg_api* api, const tg_offsets* at, const uint8_t* type, const char* name,
                   size_t size) {
    const uint8_t* text = nullptr;
    char copy[32];
    return plausible(type) && size <= sizeof copy && load(api, type, at->type_name, &text) &&
           api->read(copy, text, size) != 0 && memcmp(copy, name, size) == 0;
}

// Which tasks are looked at must not depend on when they were made.
uint64_t seed() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return mix(static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
               static_cast<uint64_t>(now.tv_nsec));
}

// What a coroutine or a generator says of itself.
struct Suspended {
    RawFrame frame;
    const uint8_t* awaited;  // NULL: nothing that has a frame
};

class Census {
  public:
    Census(const tg_api* api, const tg_offsets* offsets, tg_census* out)
        : api_(api),
          at_(offsets),
          tasks_(api, offsets),
          trio_(api, offsets),
          codes_(api, offsets),
          out_(out) {}

    void take() {
        size_t bytes = 0;
        auto* room = static_cast<RawFrame*>(api_->borrow_scratch(&bytes));
        if (!room) return;
        frames_ = room;
        most_ = bytes / sizeof(RawFrame);
        if (most_ > kMostFrames) most_ = kMostFrames;
        // What was not read as a whole counts for nothing: the censuses beside it have its time.
        out_->readable = take_of_asyncio() && take_of_trio() && any_ ? 1 : 0;
        api_->return_scratch(room);
    }

  private:
    bool take_of_asyncio() {
        const uint8_t* names = tasks_.module_names();
        if (!names) return true;
        any_ = true;
        if (at_->task_node != 0) return choose_from_lists() && look_at_chosen();
        const uint8_t* all = Dict(api_, at_, names).find(at_->all_tasks);
        const uint8_t* set = all ? set_of(all) : nullptr;
        return set && choose_from_set(set, kWanted) && look_at_chosen();
    }

    bool take_of_trio() {
        Trio::Runs runs;
        trio_.find_runs(&runs);
        out_->unreadable = runs.unreadable ? 1 : 0;
        any_ = any_ || runs.imported;
        for (size_t i = 0; i < runs.count; ++i) {
            run_ = &runs.run[i];
            if (!choose_from_set(run_->tasks, kWanted / runs.count + 1) || !look_at_chosen())
                return false;
        }
        return true;
    }

    bool look_at_chosen() {
        for (size_t i = 0; i < found_; ++i) look_at(chosen_[i]);
        found_ = 0;
        return true;
    }

    // The set of a WeakSet, its first attribute.
    const uint8_t* set_of(const uint8_t* weak_set) const {
        const uint8_t* set = nullptr;
        const uint8_t* type = nullptr;
        if (!plausible(weak_set)) return nullptr;
        if (const uint8_t* values = tg_attribute_values(weak_set, api_->read)) {
            if (!load(api_, values, 0, &set)) return nullptr;
        } else {
            const uint8_t* dict = nullptr;
            if (!load(api_, weak_set - 3 * sizeof(void*), 0, &dict)) return nullptr;
            set = Dict(api_, at_, dict).find("data");
        }
        if (!plausible(set) || !load(api_, set, at_->object_type, &type) ||
            type != reinterpret_cast<const uint8_t*>(&PySet_Type))
            return nullptr;
        return set;
    }

    // Blocks of the set's table, spread over it: each task is in one of them with the same chance,
    // which is chosen before they are looked at.
    bool choose_from_set(const uint8_t* set, size_t about) {
        struct Table {
            int64_t used;
            int64_t mask;
            const uint8_t* entries;
        };
        const auto read_table = [&](Table* table) {
            return load(api_, set, at_->set_used, &table->used) &&
                   load(api_, set, at_->set_mask, &table->mask) &&
                   load(api_, set, at_->set_table, &table->entries);
        };
        Table table{};
        if (!read_table(&table)) return false;
        const auto places = static_cast<size_t>(table.mask) + 1;
        const auto used = static_cast<size_t>(table.used);
        if (table.mask < 0 || places > kMostPlaces || (places & (places - 1)) != 0 ||
            used > places || !plausible(table.entries))
            return false;
        chance_ = 1;
        if (used == 0) return true;
        struct Entry {
            const uint8_t* key;
            int64_t hash;
        };
        const size_t block = places < kBlock ? places : kBlock;
        const size_t blocks = places / block;
        size_t wanted = used <= about ? blocks : (blocks * about + used - 1) / used;
        if (wanted > kMostBlocks) wanted = kMostBlocks;
        if (wanted > blocks) wanted = blocks;
        chance_ = static_cast<double>(wanted) / static_cast<double>(blocks);
        const size_t start = next_random(&random_) % blocks;
        const size_t step = next_random(&random_) % blocks | 1;  // odd: it meets each block once
        for (size_t i = 0; i < wanted; ++i) {
            const size_t place = ((start + i * step) & (blocks - 1)) * block;
            Entry entries[kBlock];
            if (!api_->read(entries, table.entries + place * sizeof(Entry), block * sizeof(Entry)))
                return false;
            for (size_t each = 0; each < block; ++each)
                add(run_ ? entries[each].key : target_of(entries[each].key));
        }
        // Another table may have taken its place meanwhile.
        Table again{};
        return read_table(&again) && again.entries == table.entries && again.mask == table.mask;
    }

    // The task that a weak reference is to; NULL for what is none.
    const uint8_t* target_of(const uint8_t* reference) const {
        const uint8_t* type = nullptr;
        const uint8_t* target = nullptr;
        if (!plausible(reference) || !load(api_, reference, at_->object_type, &type) ||
            type != reinterpret_cast<const uint8_t*>(&_PyWeakref_RefType) ||
            !load(api_, reference, at_->reference_target, &target))
            return nullptr;
        return target;
    }

    // From 3.14 on: the lists of the main interpreter's threads, and that of threads that ended.
    // They are gone along, so that a long one takes time; the caller rests in proportion.
    bool choose_from_lists() {
        const auto* runtime = static_cast<const uint8_t*>(tg_runtime());
        const uint8_t* interpreter = nullptr;
        const uint8_t* tstate = nullptr;
        if (!load(api_, runtime, at_->runtime_main, &interpreter) || !plausible(interpreter) ||
            !load(api_, interpreter, at_->interpreter_threads, &tstate))
            return false;
        static size_t latest = 0;  // of the recorder's own thread alone
        chance_ =
            latest <= kWanted ? 1 : static_cast<double>(kWanted) / static_cast<double>(latest);
        size_t steps = 0;
        bool whole = along(interpreter + at_->interpreter_tasks, &steps);
        for (size_t i = 0; whole && plausible(tstate) && i < kMostSteps; ++i) {
            whole = along(tstate + at_->tstate_tasks, &steps) &&
                    load(api_, tstate, at_->tstate_next, &tstate);
        }
        latest = steps;
        return whole;
    }

    bool along(const uint8_t* head, size_t* steps) {
        const uint8_t* node = nullptr;
        if (!load(api_, head, 0, &node)) return false;
        if (!node) return true;  // a list that was not begun yet
        bool whole = true;
        while (node != head) {
            // A task that ended meanwhile leads nowhere: what follows it would be missing.
            if (!plausible(node) || ++*steps > kMostSteps) return false;
            if (uniform(&random_) < chance_) {
                // Many more than at the census before: it is left out, and its time goes to others.
                if (found_ == kMostTasks) whole = false;
                add(node - at_->task_node);
            }
            if (!load(api_, node, 0, &node)) return false;
        }
        return whole;
    }

    void add(const uint8_t* task) {
        if (plausible(task) && found_ < kMostTasks) chosen_[found_++] = task;
    }

    // What a task of either library says of itself.
    struct Fields {
        const uint8_t* coroutine;
        const uint8_t* context;
        const uint8_t* name;   // of asyncio's
        Trio::Task of_trio{};  // of trio's
    };

    bool read_fields(const uint8_t* task, Fields* to) {
        if (run_) {
            if (!trio_.read_task(task, &to->of_trio)) return false;
            to->coroutine = to->of_trio.coroutine;
            to->context = to->of_trio.context;
            return true;
        }
        const uint8_t* fields[3];  // task_coro, task_name, task_context
        if (!is_task(task) || !api_->read(fields, task + at_->task_coroutine, sizeof fields))
            return false;
        to->coroutine = fields[0];
        to->name = fields[1];
        to->context = fields[2];
        return true;
    }

    void look_at(const uint8_t* task) {
        size_t count = 0;
        Fields fields{};
        if (!read_fields(task, &fields) || (run_ && trio_.is_own(*run_, fields.of_trio))) return;
        const Read read = chain(task, fields, &count);
        if (read == Read::torn) ++out_->torn;
        if (read != Read::whole) return;
        const uint32_t stack = intern(fields, count);
        if (stack == TG_NONE) {
            ++out_->lost;
            return;
        }
        const uint8_t* awaiting = run_ ? trio_.awaiter_of(*run_, fields.of_trio) : awaiter_of(task);
        if (awaiting != awaiter_.object) {
            awaiter_ = {awaiting, TG_NONE};
            Fields of_awaiter{};
            if (awaiting && awaiting != task && read_fields(awaiting, &of_awaiter) &&
                chain(awaiting, of_awaiter, &count) == Read::whole)
                awaiter_.id = intern(of_awaiter, count);
        }
        const uint32_t awaiter = awaiter_.id;
        const uint32_t span = CurrentSpan(api_, at_).of_context(fields.context);
        for (uint32_t i = 0; i < out_->count; ++i) {
            tg_awaiting& place = out_->places[i];
            if (place.stack == stack && place.awaiter == awaiter && place.span == span &&
                place.chance == chance_) {
                ++place.tasks;
                return;
            }
        }
        if (out_->count == out_->room) {
            ++out_->lost;
            return;
        }
        out_->places[out_->count++] = {stack, awaiter, span, 1, chance_};
    }

    bool is_task(const uint8_t* object) {
        const uint8_t* type = nullptr;
        if (!load(api_, object, at_->object_type, &type)) return false;
        if (type == task_type_) return true;
        if (!tasks_.is_task(object)) return false;
        task_type_ = type;
        return true;
    }

    enum class Read { none, torn, whole };

    // The frames of a suspended task, the root first, to be reversed; none if it does not await.
    Read chain(const uint8_t* task, const Fields& fields, size_t* count) {
        const uint8_t* root = fields.coroutine;
        size_t found = 0;
        const uint8_t* object = root;
        while (found < most_ && plausible(object)) {
            Suspended here{};
            const Read read = step(object, &here);
            if (read == Read::none && found > 0) break;
            if (read != Read::whole) return found > 0 ? Read::torn : Read::none;
            frames_[found++] = here.frame;
            object = here.awaited;
        }
        if (found == 0) return Read::none;
        // It may have moved on meanwhile: then something is not as it was.
        Fields again{};
        if (!read_fields(task, &again) || again.coroutine != root) return Read::torn;
        for (size_t i = 0; i < found; ++i) {
            Suspended here{};
            if (step(frames_[i].frame - at_->coroutine_frame, &here) != Read::whole ||
                here.frame.code != frames_[i].code ||
                here.frame.instruction != frames_[i].instruction)
                return Read::torn;
        }
        for (size_t i = 0; i < found / 2; ++i) {
            const RawFrame outer = frames_[i];
            frames_[i] = frames_[found - 1 - i];
            frames_[found - 1 - i] = outer;
        }
        *count = found;
        return Read::whole;
    }

    static bool has_frame(const uint8_t* type) {
        return type == reinterpret_cast<const uint8_t*>(&PyCoro_Type) ||
               type == reinterpret_cast<const uint8_t*>(&PyGen_Type) ||
               type == reinterpret_cast<const uint8_t*>(&PyAsyncGen_Type);
    }

    // One coroutine, generator or asynchronous generator. None: it is another object; torn: it does
    // not stand still, or is not as it should be.
    Read step(const uint8_t* object, Suspended* here) const {
        constexpr char kSend[] = "async_generator_asend";
        const uint8_t* type = nullptr;
        if (!load(api_, object, at_->object_type, &type)) return Read::torn;
        if (!has_frame(type)) {
            if (!is_type_named(api_, at_, type, kSend, sizeof kSend)) return Read::none;
            if (!load(api_, object, sizeof(PyObject), &object) || !plausible(object) ||
                !load(api_, object, at_->object_type, &type) || !has_frame(type))
                return Read::torn;
        }
        int8_t state = 0;
        uint8_t copy[kFrameCopy];
        const uint8_t* frame = object + at_->coroutine_frame;
        if (!load(api_, object, at_->generator_state, &state) ||
            !api_->read(copy, frame, at_->frame_size))
            return Read::torn;
        if (state < at_->suspended_first || state >= at_->suspended_end) return Read::torn;
        const void* code_type = nullptr;
        int64_t units = 0;
        const auto* code = reinterpret_cast<const uint8_t*>(
            field<uintptr_t>(copy, at_->frame_code) & ~at_->code_tag_mask);
        const auto* instruction = field<const uint8_t*>(copy, at_->frame_instruction);
        if (field<uint8_t>(copy, at_->frame_owner) != at_->owner_generator || !plausible(code) ||
            !load(api_, code, at_->object_type, &code_type) || code_type != &PyCode_Type ||
            !load(api_, code, at_->code_units, &units))
            return Read::torn;
        const int64_t offset = instruction - (code + at_->code_instructions);
        if (offset < 0 || offset >= units * 2 || offset % 2 != 0) return Read::torn;
        here->frame = {frame, code, static_cast<int32_t>(offset), TG_NONE};
        here->awaited = awaits(state, instruction) ? top_of(frame) : nullptr;
        return Read::whole;
    }

    bool awaits(int8_t state, const uint8_t* instruction) const {
        if (at_->awaits != TG_NO_STATE) return state >= at_->awaits;
        uint8_t next[2];
        return api_->read(next, instruction + 2, sizeof next) != 0 &&
               tg_resumes_await(next[0], next[1]) != 0;
    }

    // The uppermost value of a frame's stack.
    const uint8_t* top_of(const uint8_t* frame) const {
        const uint8_t* value = nullptr;
        if (at_->frame_values == 0) {
            const uint8_t* end = nullptr;
            uintptr_t tagged = 0;
            if (!load(api_, frame, at_->frame_values_end, &end) || !plausible(end) ||
                !load(api_, end - sizeof(void*), 0, &tagged))
                return nullptr;
            value = reinterpret_cast<const uint8_t*>(tagged & ~at_->value_tag_mask);
        } else {
            int32_t count = 0;
            if (!load(api_, frame, at_->frame_values_end, &count) || count <= 0 ||
                count > (1 << 20) ||
                !load(api_, frame + at_->frame_values,
                      (static_cast<size_t>(count) - 1) * sizeof(void*), &value))
                return nullptr;
        }
        return plausible(value) ? value : nullptr;
    }

    // Tasks of a kind share their code objects: each is looked at once in a census.
    bool name_code(RawFrame* frame) {
        Known& known = codes_known_[reinterpret_cast<uintptr_t>(frame->code) >> 5 & (kKnown - 1)];
        if (known.object != frame->code) {
            if (!codes_.intern(frame->code, frame->frame, &known.id)) {
                known.object = nullptr;
                return false;
            }
            known.object = frame->code;
        }
        frame->id = known.id;
        return true;
    }

    uint32_t intern(const Fields& fields, size_t count) {
        for (size_t i = 0; i < count; ++i)
            if (!name_code(&frames_[i])) return TG_NONE;
        TaskName name;
        const bool named = run_ ? tasks_.read_text(fields.of_trio.name, &name)
                                : tasks_.read_name(fields.name, &name);
        const tg_text told = named ? tg_text{name.data, name.length, name.width} : tg_text{};
        const tg_path path{frames_, count, named ? &told : nullptr, count - 1, 0, nullptr, 0};
        return api_->intern_path(&path);
    }

    // The task that awaits a task: the one that its first callback wakes, or that the future wakes
    // which this callback completes (gather, wait, shield, wait_for).
    const uint8_t* awaiter_of(const uint8_t* task) const {
        const uint8_t* future = task;
        for (int i = 0; future && i < kMostCallbacks; ++i) {
            const uint8_t* callback = nullptr;
            const uint8_t* type = nullptr;
            if (!load(api_, future, at_->future_callback, &callback) || !plausible(callback) ||
                !load(api_, callback, at_->object_type, &type))
                return nullptr;
            if (type == reinterpret_cast<const uint8_t*>(&PyCFunction_Type)) {
                const uint8_t* self = nullptr;
                return load(api_, callback, at_->builtin_self, &self) && plausible(self) &&
                               tasks_.is_task(self)
                           ? self
                           : nullptr;
            }
            if (type == reinterpret_cast<const uint8_t*>(&PyMethod_Type)) {
                const uint8_t* self = nullptr;
                return load(api_, callback, at_->method_self, &self) && plausible(self)
                           ? of_group(self)
                           : nullptr;
            }
            future = completes(callback, type, task);
        }
        return nullptr;
    }

    // The future that a callback holds: in its closure, or among the arguments of a partial. Beside
    // it there may be the task that awaits it (asyncio.wait since 3.14), which no callback
    // completes.
    const uint8_t* completes(const uint8_t* callback, const uint8_t* type,
                             const uint8_t* task) const {
        constexpr char kPartial[] = "functools.partial";
        const bool function = type == reinterpret_cast<const uint8_t*>(&PyFunction_Type);
        size_t place = at_->function_closure;
        if (!function) {
            if (!is_type_named(api_, at_, type, kPartial, sizeof kPartial)) return nullptr;
            place = sizeof(PyObject) + sizeof(void*);  // the arguments follow the function
        }
        const uint8_t* held = nullptr;
        const void* held_type = nullptr;
        const uint8_t* awaiting = nullptr;
        int64_t count = 0;
        if (!load(api_, callback, place, &held) || !plausible(held) ||
            !load(api_, held, at_->object_type, &held_type) || held_type != &PyTuple_Type ||
            !load(api_, held, at_->tuple_size, &count))
            return nullptr;
        for (size_t i = 0; i < kMostCells && static_cast<int64_t>(i) < count; ++i) {
            const uint8_t* value = nullptr;
            if (!load(api_, held, at_->tuple_items + i * sizeof(void*), &value) ||
                !plausible(value))
                continue;
            if (function && !load(api_, value, at_->cell_value, &value)) continue;
            if (value == task || !plausible(value) || !tasks_.is_future(value)) continue;
            if (!tasks_.is_task(value)) return value;
            awaiting = value;
        }
        return awaiting;
    }

    // The parent of a task group, if it awaits a future of the group.
    const uint8_t* of_group(const uint8_t* group) const {
        const uint8_t* values = tg_attribute_values(group, api_->read);
        if (!values) return nullptr;
        const uint8_t* attributes[kAttributes] = {};
        for (size_t i = 0; i < kAttributes; ++i)
            if (!load(api_, values, i * sizeof(void*), &attributes[i])) break;
        for (const uint8_t* parent : attributes) {
            const uint8_t* waits_for = nullptr;
            if (!plausible(parent) || !tasks_.is_task(parent) ||
                !load(api_, parent, at_->task_coroutine - sizeof(void*), &waits_for) || !waits_for)
                continue;
            for (const uint8_t* each : attributes)
                if (each == waits_for) return parent;
        }
        return nullptr;
    }

    const tg_api* api_;
    const tg_offsets* at_;
    Tasks tasks_;
    Trio trio_;
    const Trio::Run* run_ =
        nullptr;         // the run of trio that is looked at; NULL: asyncio's tasks are
    double chance_ = 0;  // that each of these tasks had
    Codes codes_;
    tg_census* out_;
    uint64_t random_ = seed();
    RawFrame* frames_ = nullptr;
    size_t most_ = 0;
    // What was looked at in this census.
    struct Known {
        const uint8_t* object = nullptr;
        uint32_t id = TG_NONE;
    };
    static constexpr size_t kKnown = 64;
    Known codes_known_[kKnown];
    Known awaiter_;
    const uint8_t* task_type_ = nullptr;
    bool any_ = false;  // there is a library of tasks
    const uint8_t* chosen_[kMostTasks];
    size_t found_ = 0;
};

}  // namespace

void take_census(const tg_api* api, const tg_offsets* offsets, tg_census* out) {
    out->count = out->torn = out->lost = 0;
    out->readable = out->unreadable = 0;
    Census(api, offsets, out).take();
}

}  // namespace tachograph

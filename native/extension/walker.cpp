#include "walker.h"

#include "codes.h"
#include "current_span.h"
#include "reading.h"
#include "tasks.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <initializer_list>

namespace tachograph {
namespace {

constexpr size_t kMostFrames = 4096;
constexpr size_t kMostThreadStates = 10'000;
constexpr size_t kMostInterpreters = 64;
constexpr size_t kShortened = 8;  // frames of a stack for which there was no room
constexpr size_t kFrameCopy = 128;
constexpr size_t kMostShims = 100'000;
constexpr int64_t kMostHiddenUnits = 4;

// Values of tg_walk::collecting.
constexpr uint8_t kCollectingUnknown = 0;
constexpr uint8_t kCollecting = 1;
constexpr uint8_t kNotCollecting = 2;

// The latest frames of some code objects: in a stack that recurs, each object is looked at once.
class LatestFrames {
  public:
    const RawFrame* of(const uint8_t* code) const {
        const RawFrame* found = latest_[slot(code)];
        return found && found->code == code ? found : nullptr;
    }
    void add(const RawFrame* frame) { latest_[slot(frame->code)] = frame; }

  private:
    static constexpr size_t kSlots = 8;
    static size_t slot(const uint8_t* code) {
        return (reinterpret_cast<uintptr_t>(code) >> 4 ^ reinterpret_cast<uintptr_t>(code) >> 8) %
               kSlots;
    }
    const RawFrame* latest_[kSlots] = {};
};

}  // namespace

// The thread's data stack: frames that are not a generator's lie in one of its chunks.
class Walker::Chunks {
  public:
    Chunks(const Walker& walker, const uint8_t* tstate) : walker_(walker) {
        if (!load(walker.api_, tstate, walker.at_->tstate_chunk, &next_)) next_ = nullptr;
    }

    bool hold(const uint8_t* frame) {
        for (size_t i = count_; i-- > 0;)
            if (frame >= starts_[i] && frame < starts_[i] + sizes_[i]) return true;
        while (next_ && plausible(next_) && count_ < kMost) {
            const uint8_t* chunk = next_;
            size_t size = 0;
            if (!load(walker_.api_, chunk, walker_.at_->chunk_size, &size) ||
                size > (size_t{1} << 32) ||
                !load(walker_.api_, chunk, walker_.at_->chunk_previous, &next_))
                return false;
            starts_[count_] = chunk;
            sizes_[count_++] = size;
            if (frame >= chunk && frame < chunk + size) return true;
        }
        return count_ == kMost;  // deeper than we look: no proof against it
    }

  private:
    static constexpr size_t kMost = 64;
    const Walker& walker_;
    const uint8_t* next_ = nullptr;
    const uint8_t* starts_[kMost];
    size_t sizes_[kMost];
    size_t count_ = 0;
};

// A _PyCFrame is a C local that is linked before it is filled (3.11, 3.12): hence the checks.
bool Walker::innermost(const uint8_t* tstate, const uint8_t** frame) const {
    if (!load(api_, tstate, at_->tstate_frame, frame)) return false;
    return !at_->frame_in_cframe ||
           (plausible(*frame) && load(api_, *frame, at_->cframe_frame, frame));
}

// 3.11: each activation has a _PyCFrame among its C locals, which holds its innermost frame.
void Walker::find_cframes(const uint8_t* tstate, const RawFrame* frames, size_t count,
                          Activations* activations) const {
    const uint8_t* cframe = nullptr;
    if (!load(api_, tstate, at_->tstate_frame, &cframe)) return;
    size_t at = 0;
    while (plausible(cframe) && activations->count < activations->room) {
        const uint8_t* frame = nullptr;
        if (!load(api_, cframe, at_->cframe_frame, &frame)) return;
        while (at < count && frames[at].frame != frame) ++at;
        if (at == count) return;
        activations->add(cframe, at);
        if (!load(api_, cframe, at_->cframe_previous, &cframe)) return;
    }
}

// What CPython 3.13 and later put between the caller of a class and its __init__. Tracebacks leave
// it out, too: it has no line, and one text for its name and its file.
bool Walker::hidden(const uint8_t* code, int64_t units) const {
    int first_line = 1;
    const void* name = nullptr;
    const void* file = nullptr;
    return units <= kMostHiddenUnits && load(api_, code, at_->code_first_line, &first_line) &&
           first_line == 0 && load(api_, code, at_->code_qualname, &name) &&
           load(api_, code, at_->code_filename, &file) && name == file;
}

Frames Walker::collect(const uint8_t* tstate, RawFrame* frames, size_t most,
                       Activations* activations) const {
    Frames found{0, TG_STACK_TORN, 0, false};
    const uint8_t* frame = nullptr;
    if (!innermost(tstate, &frame)) return found;

    Chunks chunks(*this, tstate);
    size_t count = 0;
    size_t innermost_of_activation = 0;
    for (size_t steps = 0; frame; ++steps) {
        uint8_t copy[kFrameCopy];
        if (!plausible(frame) || steps > kMostShims || !api_->read(copy, frame, at_->frame_size))
            return found;
        const auto owner = field<uint8_t>(copy, at_->frame_owner);
        const auto* previous = field<const uint8_t*>(copy, at_->frame_previous);
        if (owner >= at_->owner_shim_first && owner <= at_->owner_shim_last) {
            // Since 3.12 the frames up to here are run by the activation that has this among its C
            // locals (or it is the thread state's, and in no native frame).
            if (activations && count > innermost_of_activation)
                activations->add(frame, innermost_of_activation);
            innermost_of_activation = count;
            frame = previous;
            continue;
        }
        if (owner == at_->owner_generator)
            found.generators = true;
        else if (owner != 0 || !chunks.hold(frame))
            return found;
        if (count == most) {
            found.count = count;
            found.state = TG_STACK_TRUNCATED;
            return found;
        }
        const auto tagged = field<uintptr_t>(copy, at_->frame_code);
        const auto* code = reinterpret_cast<const uint8_t*>(tagged & ~at_->code_tag_mask);
        const auto* instruction = field<const uint8_t*>(copy, at_->frame_instruction);
        const void* type = nullptr;
        int64_t units = 0;
        if (!plausible(code) || !load(api_, code, at_->object_type, &type) || type != code_type_ ||
            !load(api_, code, at_->code_units, &units))
            return found;
        const int64_t offset = instruction - (code + at_->code_instructions);
        const int64_t first = at_->instruction_is_previous ? -2 : 0;
        if (offset < first || offset >= units * 2 || offset % 2 != 0) return found;
        if (hidden(code, units)) {
            frame = previous;
            continue;
        }
        if (count == 0 && offset >= 0 && !api_->read(&found.opcode, instruction, 1)) return found;
        frames[count++] = {frame, code, offset < 0 ? -1 : static_cast<int32_t>(offset), TG_NONE};
        frame = previous;
    }
    if (activations && at_->owner_shim_first == TG_NO_SHIMS)
        find_cframes(tstate, frames, count, activations);
    found.count = count;
    found.state = count ? TG_STACK_WHOLE : TG_STACK_NONE;
    return found;
}

// Whether a second look finds the same frames at the same instructions.
bool Walker::same_again(const uint8_t* tstate, const RawFrame* frames, const Frames& found,
                        RawFrame* room, size_t most) const {
    const Frames again = collect(tstate, room, most);
    if (again.count != found.count || again.state != found.state) return false;
    for (size_t i = 0; i < found.count; ++i)
        if (room[i].frame != frames[i].frame || room[i].code != frames[i].code ||
            room[i].instruction != frames[i].instruction)
            return false;
    return true;
}

// Where there is no room for a stack, its innermost frames are taken, in the room that is left for
// such; at last its leaf alone.
void Walker::intern(tg_path path, tg_walk* out) const {
    path.activations = out->activations;
    path.activation_count = out->activation_count;
    out->stack = api_->intern_path(&path);
    const size_t all = path.count;
    path.last_room = 1;
    for (const size_t most : {kShortened, size_t{1}}) {
        if (out->stack != TG_NONE) return;
        path.count = all < most ? all : most;
        out->stack = api_->intern_path(&path);
        if (out->stack == TG_NONE || path.count == all) continue;
        out->state = TG_STACK_TRUNCATED;
        out->shortened = 1;
        api_->count_loss(TG_LOSS_STACKS_SHORTENED);
    }
    if (out->stack != TG_NONE) return;
    out->state = TG_STACK_LOST;
    out->activation_count = 0;
}

void Walker::walk(const uint8_t* tstate, const Stands& stands, tg_walk* out) const {
    size_t room = 0;
    out->span = CurrentSpan(api_, at_).of_thread(tstate);
    auto* frames = static_cast<RawFrame*>(api_->borrow_scratch(&room));
    if (!frames) {
        out->state = TG_STACK_LOST;
        return;
    }
    room /= sizeof(RawFrame) * (stands.twice ? 2 : 1);
    Activations activations{out->activations, out->activation_room, 0};
    const size_t most = room < kMostFrames ? room : kMostFrames;
    const Frames found = collect(tstate, frames, most, &activations);
    out->state = found.state;
    out->opcode = found.opcode;
    size_t count = found.count;
    TaskName name;
    const bool named = found.generators && Tasks(api_, at_).find(tstate, frames, count, &name);
    const tg_text task = named ? tg_text{name.data, name.length, name.width} : tg_text{};
    // What was read of a thread that ran meanwhile is not a stack: none of it may enter the tables.
    if (!stands.still() ||
        (stands.twice && !same_again(tstate, frames, found, frames + room, most))) {
        out->state = TG_STACK_TORN;
        out->span = 0;
        count = 0;
    }
    const Codes codes(api_, at_);
    LatestFrames latest;
    bool nameless = false;
    for (size_t i = 0; i < count; ++i) {
        RawFrame& frame = frames[i];
        if (const RawFrame* same = latest.of(frame.code)) {
            frame.id = same->id;
        } else if (!codes.intern(frame.code, frame.frame, &frame.id)) {
            out->state = TG_STACK_TORN;
            count = 0;
            break;
        }
        latest.add(&frame);
        nameless = nameless || frame.id == TG_NONE;
    }
    if (nameless && count > 0) api_->count_loss(TG_LOSS_CODES_LOST);
    for (size_t at = count; at-- > 0 && out->depth < out->room;)
        out->positions[out->depth++] = {frames[at].frame, frames[at].instruction};
    if (count > 0) {
        out->activation_count = activations.count;
        intern({frames, count, named ? &task : nullptr, named ? name.frame : 0, 0, nullptr, 0},
               out);
    }
    api_->return_scratch(frames);
}

const uint8_t* Walker::own(int* attached) const {
    const auto* known = static_cast<const uint8_t*>(tg_own_thread_state(attached));
    if (*attached) return known;
    const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
    if (!known && !tg_own_thread_state_is_found()) return find_thread_state(tid);
    const auto* running = static_cast<const uint8_t*>(tg_running_thread_state());
    if (!running || !belongs(running, tid)) return known;
    *attached = 1;
    return running;
}

void Walker::self(tg_walk* out) const {
    int attached = 0;
    const uint8_t* tstate = own(&attached);
    out->gil = attached ? 1 : 0;
    out->collecting = attached && tstate ? collecting(tstate) : kNotCollecting;
    if (tstate) walk(tstate, {}, out);
}

// Only a thread that holds the GIL collects; another value than 0 and 1 is not what we take it for.
uint8_t Walker::collecting(const uint8_t* tstate) const {
    const uint8_t* interpreter = nullptr;
    int value = 0;
    if (!load(api_, tstate, at_->tstate_interpreter, &interpreter) || !plausible(interpreter) ||
        !load(api_, interpreter, at_->interpreter_collecting, &value) || value < 0 || value > 1)
        return kCollectingUnknown;
    return value == 1 ? kCollecting : kNotCollecting;
}

bool Walker::position(tg_position* out) const {
    int attached = 0;
    const uint8_t* tstate = own(&attached);
    const uint8_t* frame = nullptr;
    if (!tstate || !innermost(tstate, &frame)) return false;
    for (size_t steps = 0; plausible(frame) && steps < kMostShims; ++steps) {
        uint8_t copy[kFrameCopy];
        if (!api_->read(copy, frame, at_->frame_size)) return false;
        const auto owner = field<uint8_t>(copy, at_->frame_owner);
        if (owner >= at_->owner_shim_first && owner <= at_->owner_shim_last) {
            frame = field<const uint8_t*>(copy, at_->frame_previous);
            continue;
        }
        const auto tagged = field<uintptr_t>(copy, at_->frame_code);
        const auto* code = reinterpret_cast<const uint8_t*>(tagged & ~at_->code_tag_mask);
        const auto* instruction = field<const uint8_t*>(copy, at_->frame_instruction);
        const int64_t offset = instruction - (code + at_->code_instructions);
        int64_t units = 0;
        if (plausible(code) && load(api_, code, at_->code_units, &units) && hidden(code, units)) {
            frame = field<const uint8_t*>(copy, at_->frame_previous);
            continue;
        }
        *out = {frame, offset < 0 ? -1 : static_cast<int32_t>(offset)};
        return true;
    }
    return false;
}

uint64_t Walker::progress() const {
    tg_position at{};
    if (!position(&at)) return 0;
    return reinterpret_cast<uint64_t>(at.frame) + at_->frame_instruction;
}

// The type of a type is `type`, or is derived from it.
bool Walker::is_type(uint64_t address) const {
    uint64_t metatype = 0;
    unsigned long flags = 0;
    const auto* type = reinterpret_cast<const uint8_t*>(address);
    if (address % 8 != 0 || !plausible(type) || !load(api_, type, at_->object_type, &metatype) ||
        metatype % 8 != 0)
        return false;
    const auto* meta = reinterpret_cast<const uint8_t*>(metatype);
    return plausible(meta) && load(api_, meta, at_->type_flags, &flags) &&
           (flags & at_->type_flag) != 0;
}

// An object begins at one of a few words around the address, with its type at a known offset.
bool Walker::is_header(uint64_t address, uint64_t size) const {
    constexpr uint64_t kCollected = 16;  // what the collection keeps before an object
    const uint64_t header = at_->object_type + 8;
    const uint64_t first = (address - header + 8) & ~uint64_t{7};
    for (uint64_t object = first; object < address + size + kCollected; object += 8) {
        uint64_t type = 0;
        const auto* at = reinterpret_cast<const uint8_t*>(object);
        if (plausible(at) && load(api_, at, at_->object_type, &type) && is_type(type)) return true;
    }
    return false;
}

bool Walker::belongs(const uint8_t* tstate, pid_t tid) const {
    unsigned long native = 0;
    return plausible(tstate) && load(api_, tstate, at_->tstate_native_thread_id, &native) &&
           native == static_cast<unsigned long>(tid);
}

// The list may change under us: every step is guarded, and the caller checks what comes of it.
const uint8_t* Walker::find_thread_state(pid_t tid) const {
    const uint8_t* interpreter = nullptr;
    if (!load(api_, static_cast<const uint8_t*>(tg_runtime()), at_->runtime_interpreters,
              &interpreter))
        return nullptr;
    for (size_t i = 0; plausible(interpreter) && i < kMostInterpreters; ++i) {
        const uint8_t* tstate = nullptr;
        if (!load(api_, interpreter, at_->interpreter_threads, &tstate)) return nullptr;
        for (size_t n = 0; plausible(tstate) && n < kMostThreadStates; ++n) {
            if (belongs(tstate, tid)) return tstate;
            if (!load(api_, tstate, at_->tstate_next, &tstate)) break;
        }
        if (!load(api_, interpreter, at_->interpreter_next, &interpreter)) break;
    }
    return nullptr;
}

bool Walker::is_gil(const void* tstate, const void* address) const {
    if (!tstate) return false;
    const auto* gil = static_cast<const uint8_t*>(tg_runtime()) + at_->runtime_gil;
    const uint8_t* interpreter = nullptr;
    if (at_->interpreter_gil != 0 &&
        (!load(api_, static_cast<const uint8_t*>(tstate), at_->tstate_interpreter, &interpreter) ||
         !plausible(interpreter) || !load(api_, interpreter, at_->interpreter_gil, &gil)))
        return false;
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(gil) < at_->gil_size;
}

void Walker::other(pid_t tid, void** hint, const Stands& stands, tg_walk* out) const {
    const auto* tstate = static_cast<const uint8_t*>(*hint);
    if (!belongs(tstate, tid)) {
        tstate = find_thread_state(tid);
        *hint = const_cast<uint8_t*>(tstate);
    }
    if (tstate) walk(tstate, stands, out);
}

}  // namespace tachograph

#include "unwind/unwinder.h"

#include "base/safe_read.h"
#include "base/stack_switch.h"
#include "unwind/calls.h"
#include "unwind/images.h"
#include "unwind/last_path.h"
#include "unwind/rows.h"
#include "unwind/rule_cache.h"

#include <initializer_list>
#include <optional>

namespace tachograph::unwind {
namespace {

constexpr uint64_t kLargestFrame = 64ull << 20;
constexpr int kMostGuesses = 4;
constexpr int kMostSignals = 8;
constexpr uint32_t kLongestTrial = 128;  // steps
// How far return addresses are looked for on the stack of another thread, and how many are tried.
constexpr uint64_t kFarthestBelow = 8 * 1024;
constexpr int kMostBelow = 32;

enum class Moved : uint8_t { yes, root, gap, outside, torn };

// The stack above a walk, asked for before it is read: one frame leads to the next, so out of cold
// caches each would wait for its line alone.
class Ahead {
  public:
    void reach(uint64_t from) {
        if (next_ < from) next_ = from;
        for (; next_ < from + kBytes; next_ += kLine)
            __builtin_prefetch(reinterpret_cast<const void*>(next_));
    }

  private:
    static constexpr uint64_t kBytes = 1024;
    static constexpr uint64_t kLine = 64;

    uint64_t next_ = 0;
};

// One frame: its registers, and the rule out of it.
class Place {
  public:
    // `last`: where the rules of this walk are looked up and kept beside the cache, if anywhere.
    // `exact`: the program counter is that of the next instruction, and not one to come back to.
    Place(const images::Reading& images, const Registers& registers, LastPath* last,
          bool exact = true)
        : images_(&images),
          last_(last),
          registers_(registers),
          row_(look_up(registers.values[kPc], exact)),
          exact_(exact) {}

    uint64_t pc() const { return registers_.values[kPc]; }
    uint64_t sp() const { return registers_.values[kStack]; }
    uint64_t address() const { return exact_ ? pc() : pc() - 1; }
    // Of the frame that was left last; 0 where the caller is on another stack.
    uint64_t cfa() const { return cfa_; }
    bool outside() const { return row_.image == nullptr && !row_.cached; }

    // The same place, for a walk that may lead astray.
    Place on_trial() const {
        Place place = *this;
        place.last_ = nullptr;
        return place;
    }

    // Whether this frame's code exchanges stacks.
    bool switches() const { return row_.rule.switches; }

    uint8_t pushed() const { return row_.rule.pushed; }

    // Goes on to the caller. Where that fails, all stays as it was.
    Moved step() {
        const Rule& rule = row_.rule;
        switch (rule.step) {
            case Step::root:
                return Moved::root;
            case Step::none:
                return outside() ? Moved::outside : Moved::gap;
            case Step::signal:
                return leave_signal();
            case Step::offset:
            case Step::deref:
                break;
        }
        uint64_t cfa = 0;
        if (!registers_.has(rule.base)) return Moved::gap;
        if (rule.step == Step::offset) {
            cfa = registers_.values[rule.base] + static_cast<uint64_t>(int64_t{rule.offset});
        } else {
            const uint64_t at =
                registers_.values[rule.base] + static_cast<uint64_t>(int64_t{rule.displacement});
            if (!safe_read::load(&cfa, at)) return Moved::torn;
            cfa += static_cast<uint64_t>(int64_t{rule.offset});
        }
        return leave(cfa, rule.frame, rule.other);
    }

    // Goes on to the caller whose return address is in the word below `cfa`. Where there is a row,
    // which builds on a register that is not known, this tells what the register holds.
    Moved guess(uint64_t cfa) {
        const Rule rule = row_.rule;
        if (!arch::kReturnOnStack) return follow_frame_record(cfa);
        if (rule.step != Step::offset || registers_.has(rule.base)) return leave(cfa, {}, {});
        registers_.set(rule.base, cfa - static_cast<uint64_t>(int64_t{rule.offset}));
        const Moved moved = leave(cfa, rule.frame, rule.other);
        if (moved != Moved::yes) registers_.forget(rule.base);
        return moved;
    }

    rows::Gap gap() const {
        rows::Gap gap;
        if (const images::Image* image = images_->find(address()))
            rows::find(*image, address(), pc(), &gap);
        return gap;
    }
    const Registers& registers() const { return registers_; }
    const images::Reading& images() const { return *images_; }

  private:
    struct Row {
        Rule rule;
        const images::Image* image;  // nullptr also where the rule was remembered
        bool cached;
    };

    struct Value {
        uint64_t value;
        bool known;
    };

    Row look_up(uint64_t pc, bool exact) const {
        const rule_cache::Key key{exact ? pc : pc - 1, exact, images_->generation()};
        uint64_t packed = 0;
        if (last_ && last_->find(key, &packed)) return {unpack(packed), nullptr, true};
        if (rule_cache::find(key, &packed)) {
            if (last_) last_->keep(key, packed);
            return {unpack(packed), nullptr, true};
        }
        Row row{{}, images_->find(key.address), false};
        rows::Gap gap;
        if (row.image) row.rule = rows::find(*row.image, key.address, pc, &gap);
        if (row.rule.step == Step::none && ends_handlers(pc)) row.rule.step = Step::signal;
        row.rule.after_call = !exact && calls::end_at(pc);
        row.rule.switches = row.image && row.image->switches;
        packed = pack(row.rule);
        if (row.image) {
            rule_cache::keep(key, packed);
            if (last_) last_->keep(key, packed);
        }
        row.rule = unpack(packed);
        return row;
    }

    // The caller's value of a register.
    Value restored(uint8_t number, const Save& save, uint64_t cfa) const {
        const Value own{registers_.values[number], registers_.has(number)};
        uint64_t at = static_cast<uint64_t>(int64_t{save.offset});
        switch (save.where) {
            case Saved::same:
                return own;
            case Saved::at_cfa:
                at += cfa;
                break;
            case Saved::at_frame:
                if (!registers_.has(kFrame)) return {0, false};
                // GCC's rows for the end of a function with a realigned stack go on saying so when
                // the frame pointer is the caller's again: then it points out of this frame.
                if (exact_ &&
                    (registers_.values[kFrame] < sp() || registers_.values[kFrame] >= cfa))
                    return own;
                at += registers_.values[kFrame];
                break;
            case Saved::unknown:
                return {0, false};
        }
        Value found{0, true};
        found.known = safe_read::load(&found.value, at);
        return found;
    }

    // A frame record (the caller's frame pointer, then the return address) ends at `record`. Where
    // the caller's frame begins is not known: most code has its frame pointer at its stack pointer.
    Moved follow_frame_record(uint64_t record) {
        const Moved moved = leave(record, {Saved::at_cfa, -16}, {Saved::at_cfa, -8});
        if (moved == Moved::yes && registers_.has(kFrame) &&
            registers_.values[kFrame] - record < kLargestFrame)
            registers_.set(kStack, registers_.values[kFrame]);
        return moved;
    }

    static bool ends_handlers(uint64_t pc) {
        uint64_t word = 0;
        return !arch::kReturnOnStack && safe_read::load(&word, pc) && arch::ends_handlers(word);
    }

    static bool plausible(const Row& row) {
        return row.rule.after_call || row.rule.step == Step::root || row.rule.step == Step::signal;
    }

    // Where the frame comes back to.
    Value back_to(uint64_t cfa, const Value& other) const {
        if (!arch::kReturnOnStack) return {arch::stripped(other.value), other.known};
        Value found{0, true};
        found.known = safe_read::load(&found.value, cfa - 8);
        return found;
    }

    // A function that has called nothing may have no frame of its own, and one that keeps the
    // return address at the CFA or above has it in a frame that its caller made: libffi's calls.
    bool may_be_empty(const Save& return_address) const {
        if (arch::kReturnOnStack) return false;
        return exact_ || (return_address.where == Saved::at_cfa && return_address.offset >= 0);
    }

    Moved leave(uint64_t cfa, const Save& frame, const Save& other_save) {
        const bool other_stack = stack_switch::holds(pc());
        const uint64_t least = may_be_empty(other_save) ? 0 : 8;
        const bool above = cfa >= sp() + least && cfa - sp() <= kLargestFrame;
        if (cfa % 8 != 0 || (!above && !other_stack)) return Moved::torn;
        const Value base = restored(kFrame, frame, cfa);
        const Value other = restored(kOther, other_save, cfa);
        const Value back = back_to(cfa, other);
        if (!back.known)
            return !arch::kReturnOnStack && other_save.where == Saved::same ? Moved::gap
                                                                            : Moved::torn;
        const Row row = look_up(back.value, false);
        if (!plausible(row)) return Moved::torn;
        registers_.known = 0;
        if (base.known) registers_.set(kFrame, base.value);
        if (other.known && arch::kReturnOnStack) registers_.set(kOther, other.value);
        registers_.set(kStack, cfa);
        registers_.set(kPc, back.value);
        row_ = row;
        exact_ = false;
        cfa_ = other_stack ? 0 : cfa;
        return Moved::yes;
    }

    Moved leave_signal() {
        Registers interrupted;
        for (uint8_t number = 0; number < kRegisters; ++number) {
            uint64_t value = 0;
            const uint64_t at = sp() + arch::place_in_signal_frame(number);
            if (!safe_read::load(&value, at)) return Moved::torn;
            interrupted.set(number, value);
        }
        if (++signals_ > kMostSignals) return Moved::torn;
        registers_ = interrupted;
        row_ = look_up(pc(), true);
        exact_ = true;
        cfa_ = 0;
        return Moved::yes;
    }

    const images::Reading* images_;
    LastPath* last_;
    Registers registers_;
    Row row_;
    uint64_t cfa_ = 0;
    bool exact_;
    int signals_ = 0;
};

// How far unwind rows lead from here.
struct Trial {
    Moved end;
    uint32_t steps;
};

Trial follow(Place place) {
    Trial trial{Moved::yes, 0};
    while (trial.steps < kLongestTrial) {
        trial.end = place.step();
        if (trial.end != Moved::yes) break;
        ++trial.steps;
    }
    return trial;
}

// Code without unwind rows (an assembler kernel, a JIT's): a return address of its caller's is
// somewhere above the stack pointer. One is taken if the call before it may have led here and the
// rows from there on lead to the thread's first frame. Likewise for code that finds its frame by a
// register that is not known: of a waiting thread the frame pointer is not.
class Scan {
  public:
    explicit Scan(const Place& place) : place_(place), gap_(place.gap()) {}

    // The CFA to go on from; 0 if there is none.
    uint64_t find() {
        // Kernels that align their stack keep its old pointer in one of these.
        for (const uint8_t base : {kOther, kFrame}) {
            if (!place_.registers().has(base)) continue;
            const uint64_t at = place_.registers().values[base] & ~uint64_t{7};
            if (at > place_.sp() && at - place_.sp() < kFarthestBase && search(at, kNearBase))
                return found_;
        }
        search(place_.sp(), kFarthest);
        return found_;
    }

  private:
    static constexpr uint64_t kNearBase = 256;
    static constexpr uint64_t kFarthestBase = 64 * 1024;
    static constexpr uint64_t kFarthest = 16 * 1024;
    static constexpr uint64_t kBlock = 32;  // words
    static constexpr int kMostTrials = 16;
    static constexpr uint32_t kConvincing = 3;  // steps, where another gap ends them

    bool search(uint64_t from, uint64_t bytes) {
        uint64_t words[kBlock];
        for (uint64_t at = from; at < from + bytes; at += sizeof words) {
            if (!safe_read::copy(words, reinterpret_cast<const void*>(at), sizeof words)) break;
            for (uint64_t i = 0; i < kBlock; ++i)
                if (may_lead_here(words[i]) && convinces(at + (i + 1) * sizeof words[i]))
                    return true;
            if (trials_ >= kMostTrials) break;
        }
        return found_ != 0;
    }

    bool may_lead_here(uint64_t word) const {
        if (!place_.images().spans(word) || !place_.images().find(word - 1)) return false;
        uint64_t target = 0;
        if (!calls::end_at(word, &target)) return false;
        return target == 0 || (target >= gap_.start && target < gap_.end) || calls::is_stub(target);
    }

    bool convinces(uint64_t cfa) {
        if (++trials_ > kMostTrials) return false;
        Place caller = place_.on_trial();
        if (caller.guess(cfa) != Moved::yes) return false;
        const Trial trial = follow(caller);
        if (trial.end == Moved::root || trial.end == Moved::yes) {
            found_ = cfa;
            return true;
        }
        if (trial.end == Moved::gap && trial.steps >= kConvincing && found_ == 0) found_ = cfa;
        return false;
    }

    const Place& place_;
    rows::Gap gap_;
    uint64_t found_ = 0;
    int trials_ = 0;
};

// Where the frames of a walk go.
struct Taken {
    Frame* frames;
    uint32_t room;
    uint32_t* count;
    bool* unknown_code;
};

// From the frame that is taken already on.
Path walk_out(Place place, int guesses_left, const Taken& taken) {
    Ahead ahead;
    bool guessed = false;
    bool switched = place.switches();
    for (;;) {
        uint8_t pushed = place.pushed();
        Moved moved = place.step();
        if (moved == Moved::gap && guesses_left > 0) {
            pushed = 0;
            const uint64_t cfa = Scan(place).find();
            if (cfa != 0) moved = place.guess(cfa);
            --guesses_left;
            guessed = true;
        }
        switch (moved) {
            case Moved::root:
                return guessed ? Path::guessed : Path::whole;
            case Moved::outside:
                *taken.unknown_code = true;
                return Path::truncated;
            case Moved::gap:
                return Path::truncated;
            case Moved::torn:
                return Path::torn;
            case Moved::yes:
                break;
        }
        ahead.reach(place.sp());
        taken.frames[*taken.count - 1].cfa = place.cfa();
        taken.frames[*taken.count - 1].pushed = pushed;
        if (switched && !place.switches()) return Path::truncated;
        switched = place.switches();
        if (*taken.count == taken.room) return Path::truncated;
        taken.frames[(*taken.count)++] = {place.address(), place.sp(), 0, 0};
    }
}

}  // namespace

Registers registers_of(const ucontext_t& interrupted) {
    Registers registers;
    for (uint8_t number = 0; number < kRegisters; ++number)
        registers.set(number, arch::value_of(interrupted, number));
    return registers;
}

bool open() { return images::open() && rule_cache::open() && last_path::open(); }

void forget() {
    images::forget();
    last_path::forget();
}

Path walk(const Registers& start, Frame* frames, uint32_t room, uint32_t* count,
          bool* unknown_code) {
    frames[0] = {start.values[kPc], start.values[kStack], 0, 0};
    *count = 1;
    Ahead ahead;
    ahead.reach(start.values[kStack]);
    const images::Reading images;
    if (!images) return Path::truncated;
    LastPath last;
    return walk_out({images, start, &last}, kMostGuesses, {frames, room, count, unknown_code});
}

bool walk_around(uint64_t address, Frame* frames, uint32_t room, uint32_t* count) {
    if (!arch::kReturnOnStack) return false;  // what lies where in a frame is the compiler's choice
    const images::Reading images;
    if (!images) return false;
    const auto walk_from = [&](const Place& place) {
        frames[0] = {place.address(), place.sp(), 0, 0};
        *count = 1;
        bool unknown_code = false;
        return walk_out(place, 0, {frames, room, count, &unknown_code}) == Path::whole;
    };
    std::optional<Place> around;
    int trials = 0;
    for (uint64_t sp = address & ~uint64_t{7}; sp > address - kFarthestBelow; sp -= 8) {
        uint64_t back = 0;
        if (!safe_read::load(&back, sp - 8)) break;
        if (!images.spans(back) || !images.find(back - 1) || !calls::end_at(back)) continue;
        if (++trials > kMostBelow) break;
        Registers registers;
        registers.set(kPc, back);
        registers.set(kStack, sp);
        // Code that keeps a frame pointer has the one of its caller below its return address.
        uint64_t frame = 0;
        if (safe_read::load(&frame, sp - 16) && frame >= sp && frame - sp < kLargestFrame)
            registers.set(kFrame, frame);
        const Place place(images, registers, nullptr, false);
        Place caller = place;
        if (caller.step() != Moved::yes) continue;
        if (!around && caller.cfa() > address && walk_from(place)) around = place;
        if (around && caller.cfa() == around->sp() && walk_from(place)) return true;
    }
    return around && walk_from(*around);
}

}  // namespace tachograph::unwind

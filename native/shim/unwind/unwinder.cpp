#include "unwind/unwinder.h"

#include "base/safe_read.h"
#include "unwind/calls.h"
#include "unwind/images.h"
#include "unwind/rows.h"
#include "unwind/rule_cache.h"

#include <sys/ucontext.h>
#include <initializer_list>

namespace tachograph::unwind {
namespace {

constexpr uint64_t kLargestFrame = 64ull << 20;
constexpr int kMostGuesses = 4;
constexpr int kMostSignals = 8;
constexpr uint32_t kLongestTrial = 128;  // steps

// Where the callers' registers are in the ucontext_t of a signal's frame.
constexpr uint64_t kMachineRegisters = offsetof(ucontext_t, uc_mcontext.gregs);
constexpr uint8_t kOrder[kRegisters] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                        REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                        REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};

enum class Moved : uint8_t { yes, root, gap, outside, torn };

// One frame: its registers, and the rule out of it.
class Place {
  public:
    Place(const images::Reading& images, const Registers& registers)
        : images_(&images), registers_(registers) {
        look_up();
    }

    uint64_t pc() const { return registers_.values[kReturnAddress]; }
    uint64_t sp() const { return registers_.values[kRsp]; }
    uint64_t address() const { return exact_ ? pc() : pc() - 1; }
    uint64_t cfa() const { return cfa_; }  // of the frame that was left last
    bool outside() const { return image_ == nullptr && !cached_; }

    // Whether this frame's code exchanges stacks.
    bool switches() const { return rule_.switches; }

    // Goes on to the caller. Where that fails, all stays as it was.
    Moved step() {
        switch (rule_.step) {
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
        if (!registers_.has(rule_.base)) return Moved::gap;
        if (rule_.step == Step::offset) {
            cfa = registers_.values[rule_.base] + static_cast<uint64_t>(int64_t{rule_.offset});
        } else {
            const uint64_t at =
                registers_.values[rule_.base] + static_cast<uint64_t>(int64_t{rule_.displacement});
            if (!safe_read::load(&cfa, at)) return Moved::torn;
            cfa += static_cast<uint64_t>(int64_t{rule_.offset});
        }
        return leave(cfa, rule_.rbp, rule_.rbx);
    }

    // Goes on to the caller whose return address is in the word below `cfa`.
    Moved guess(uint64_t cfa) { return leave(cfa, {}, {}); }

    rows::Gap gap() const {
        rows::Gap gap;
        if (image_) rows::find(*image_, address(), pc(), &gap);
        return gap;
    }
    void find_image() {
        if (!image_) image_ = images_->find(address());
    }
    const Registers& registers() const { return registers_; }
    const images::Reading& images() const { return *images_; }

  private:
    void look_up() {
        const rule_cache::Key key{address(), exact_, images_->generation()};
        uint64_t packed = 0;
        image_ = nullptr;
        cached_ = rule_cache::find(key, &packed);
        if (!cached_) {
            rule_ = {};
            image_ = images_->find(key.address);
            rows::Gap gap;
            if (image_) rule_ = rows::find(*image_, key.address, pc(), &gap);
            rule_.after_call = !exact_ && calls::end_at(pc());
            rule_.switches = image_ && image_->switches;
            packed = pack(rule_);
            if (image_) rule_cache::keep(key, packed);
        }
        rule_ = unpack(packed);
    }

    void restore(uint8_t number, const Save& save, uint64_t cfa, Registers* to) const {
        uint64_t at = static_cast<uint64_t>(int64_t{save.offset});
        switch (save.where) {
            case Saved::same:
                return;
            case Saved::at_cfa:
                at += cfa;
                break;
            case Saved::at_rbp:
                if (!registers_.has(kRbp)) return to->forget(number);
                // GCC's rows for the end of a function with a realigned stack go on saying so
                // when rbp is the caller's again: then it points out of this frame.
                if (exact_ && (registers_.values[kRbp] < sp() || registers_.values[kRbp] >= cfa))
                    return;
                at += registers_.values[kRbp];
                break;
            case Saved::unknown:
                return to->forget(number);
        }
        uint64_t value = 0;
        if (safe_read::load(&value, at))
            to->set(number, value);
        else
            to->forget(number);
    }

    Moved leave(uint64_t cfa, const Save& rbp, const Save& rbx) {
        if (cfa % 8 != 0 || cfa < sp() + 8 || cfa - sp() > kLargestFrame) return Moved::torn;
        uint64_t back = 0;
        if (!safe_read::load(&back, cfa - 8)) return Moved::torn;
        Registers caller = registers_;
        caller.known &= 1u << kRbx | 1u << kRbp;
        restore(kRbp, rbp, cfa, &caller);
        restore(kRbx, rbx, cfa, &caller);
        caller.set(kRsp, cfa);
        caller.set(kReturnAddress, back);
        return take(caller, false, cfa);
    }

    Moved leave_signal() {
        Registers interrupted;
        for (uint8_t number = 0; number < kRegisters; ++number) {
            uint64_t value = 0;
            const uint64_t at = sp() + kMachineRegisters + kOrder[number] * sizeof value;
            if (!safe_read::load(&value, at)) return Moved::torn;
            interrupted.set(number, value);
        }
        if (++signals_ > kMostSignals) return Moved::torn;
        return take(interrupted, true, 0);
    }

    Moved take(const Registers& caller, bool exact, uint64_t cfa) {
        const Place before = *this;
        registers_ = caller;
        exact_ = exact;
        look_up();
        const bool plausible =
            exact || rule_.after_call || rule_.step == Step::root || rule_.step == Step::signal;
        if (plausible) {
            cfa_ = cfa;
            return Moved::yes;
        }
        *this = before;
        return Moved::torn;
    }

    const images::Reading* images_;
    const images::Image* image_ = nullptr;  // nullptr also where the rule was remembered
    Registers registers_;
    Rule rule_;
    uint64_t cfa_ = 0;
    bool exact_ = true;
    bool cached_ = false;
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
// rows from there on lead to the thread's first frame.
class Scan {
  public:
    explicit Scan(const Place& place) : place_(place), gap_(place.gap()) {}

    // The CFA to go on from; 0 if there is none.
    uint64_t find() {
        // Kernels that align their stack keep its old pointer in rbx or rbp.
        for (const uint8_t base : {kRbx, kRbp}) {
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
        Place caller = place_;
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

}  // namespace

Registers registers_of(const long long* machine_registers) {
    Registers registers;
    for (uint8_t number = 0; number < kRegisters; ++number)
        registers.set(number, static_cast<uint64_t>(machine_registers[kOrder[number]]));
    return registers;
}

bool open() { return images::open() && rule_cache::open(); }

Path walk(const Registers& start, Frame* frames, uint32_t room, uint32_t* count,
          bool* unknown_code) {
    frames[0] = {start.values[kReturnAddress], start.values[kRsp], 0};
    *count = 1;
    const images::Reading images;
    if (!images) return Path::truncated;
    Place place(images, start);
    int guesses = 0;
    bool switched = place.switches();
    for (;;) {
        Moved moved = place.step();
        if (moved == Moved::gap && guesses < kMostGuesses) {
            place.find_image();
            const uint64_t cfa = Scan(place).find();
            if (cfa != 0) moved = place.guess(cfa);
            ++guesses;
        }
        switch (moved) {
            case Moved::root:
                return guesses == 0 ? Path::whole : Path::guessed;
            case Moved::outside:
                *unknown_code = true;
                return Path::truncated;
            case Moved::gap:
                return Path::truncated;
            case Moved::torn:
                return Path::torn;
            case Moved::yes:
                break;
        }
        frames[*count - 1].cfa = place.cfa();
        if (switched && !place.switches()) return Path::truncated;
        switched = place.switches();
        if (*count == room) return Path::truncated;
        frames[(*count)++] = {place.address(), place.sp(), 0};
    }
}

}  // namespace tachograph::unwind

#include "unwind/expressions.h"

#include "unwind/rules.h"

namespace tachograph::unwind {
namespace {

using Kind = Location::Kind;

// DWARF 5, section 7.7.1
enum : uint8_t {
    kDeref = 0x06,
    kConst1u = 0x08,
    kConst1s = 0x09,
    kConst2u = 0x0A,
    kConst2s = 0x0B,
    kConst4u = 0x0C,
    kConst4s = 0x0D,
    kConstu = 0x10,
    kConsts = 0x11,
    kAnd = 0x1A,
    kMinus = 0x1C,
    kPlus = 0x22,
    kPlusUconst = 0x23,
    kShl = 0x24,
    kGe = 0x2A,
    kLit0 = 0x30,
    kLit31 = 0x4F,
    kBreg0 = 0x70,
    kBregPc = 0x80,
};

constexpr int kDeepest = 6;

Location constant(int64_t value) {
    Location made;
    made.kind = Kind::constant;
    made.offset = value;
    return made;
}

// What two operands make; only sums may contain a register.
Location combine(uint8_t operation, const Location& a, const Location& b) {
    const bool constants = a.kind == Kind::constant && b.kind == Kind::constant;
    Location made = a;
    const auto left = static_cast<uint64_t>(a.offset);
    const auto right = static_cast<uint64_t>(b.offset);
    switch (operation) {
        case kPlus:
            if (a.kind == Kind::constant) made = b;
            if (a.kind != Kind::constant && b.kind != Kind::constant) return {};
            made.offset = static_cast<int64_t>(left + right);
            return made;
        case kMinus:
            if (b.kind != Kind::constant) return {};
            made.offset = static_cast<int64_t>(left - right);
            return made;
        case kAnd:
            return constants ? constant(static_cast<int64_t>(left & right)) : Location{};
        case kShl:
            return constants && right < 64 ? constant(static_cast<int64_t>(left << right))
                                           : Location{};
        case kGe:
            return constants ? constant(a.offset >= b.offset ? 1 : 0) : Location{};
        default:
            return {};
    }
}

Location dereferenced(const Location& at) {
    if (at.kind != Kind::offset) return {};
    Location made;
    made.kind = Kind::deref;
    made.base = at.base;
    made.displacement = at.offset;
    return made;
}

class Machine {
  public:
    Machine(Cursor* code, uint64_t pc) : code_(code), pc_(pc) {}

    Location run() {
        while (!code_->done() && known_) step(code_->number<uint8_t>());
        const bool whole = known_ && !code_->failed() && depth_ == 1;
        code_->skip(code_->end() - code_->at());
        return whole ? stack_[0] : Location{};
    }

  private:
    void push(const Location& location) {
        if (depth_ == kDeepest || location.kind == Kind::unknown)
            known_ = false;
        else
            stack_[depth_++] = location;
    }
    Location pop() { return depth_ > 0 ? stack_[--depth_] : Location{}; }

    void step(uint8_t operation) {
        if (operation >= kLit0 && operation <= kLit31) return push(constant(operation - kLit0));
        if (operation >= kBreg0 && operation < kBregPc) {
            Location made;
            made.kind = Kind::offset;
            made.base = operation - kBreg0;
            made.offset = code_->sleb();
            return push(made);
        }
        switch (operation) {
            case kBregPc:
                return push(constant(static_cast<int64_t>(pc_) + code_->sleb()));
            case kConst1u:
                return push(constant(code_->number<uint8_t>()));
            case kConst1s:
                return push(constant(code_->number<int8_t>()));
            case kConst2u:
                return push(constant(code_->number<uint16_t>()));
            case kConst2s:
                return push(constant(code_->number<int16_t>()));
            case kConst4u:
                return push(constant(code_->number<uint32_t>()));
            case kConst4s:
                return push(constant(code_->number<int32_t>()));
            case kConstu:
                return push(constant(static_cast<int64_t>(code_->uleb())));
            case kConsts:
                return push(constant(code_->sleb()));
            case kDeref:
                return push(dereferenced(pop()));
            case kPlusUconst: {
                const Location a = pop();
                return push(combine(kPlus, a, constant(static_cast<int64_t>(code_->uleb()))));
            }
            case kAnd:
            case kMinus:
            case kPlus:
            case kShl:
            case kGe: {
                const Location b = pop();
                const Location a = pop();
                return push(combine(operation, a, b));
            }
            default:
                known_ = false;
        }
    }

    Cursor* code_;
    uint64_t pc_;
    Location stack_[kDeepest];
    int depth_ = 0;
    bool known_ = true;
};

}  // namespace

Location evaluate(Cursor* expression, uint64_t pc) { return Machine(expression, pc).run(); }

}  // namespace tachograph::unwind

#include "unwind/rows.h"

#include "base/safe_read.h"
#include "unwind/cursor.h"
#include "unwind/expressions.h"

#include <cstring>

namespace tachograph::unwind::rows {
namespace {

constexpr uint64_t kLongestEntry = 256 * 1024;
constexpr int kMostRemembered = 8;
constexpr int64_t kUcontextStackPointer = 160;  // offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP])

// DWARF 5, section 7.24, and GNU's
enum : uint8_t {
    kAdvance = 0x40,
    kOffset = 0x80,
    kRestore = 0xC0,
    kSetLoc = 0x01,
    kAdvance1 = 0x02,
    kAdvance2 = 0x03,
    kAdvance4 = 0x04,
    kOffsetExtended = 0x05,
    kRestoreExtended = 0x06,
    kUndefined = 0x07,
    kSameValue = 0x08,
    kInRegister = 0x09,
    kRememberState = 0x0A,
    kRestoreState = 0x0B,
    kDefCfa = 0x0C,
    kDefCfaRegister = 0x0D,
    kDefCfaOffset = 0x0E,
    kDefCfaExpression = 0x0F,
    kExpression = 0x10,
    kOffsetExtendedSf = 0x11,
    kDefCfaSf = 0x12,
    kDefCfaOffsetSf = 0x13,
    kValOffset = 0x14,
    kValOffsetSf = 0x15,
    kValExpression = 0x16,
    kNegateReturnState = 0x2D,  // of aarch64: whether the return address is authenticated
    kGnuArgsSize = 0x2E,
    kGnuNegativeOffset = 0x2F,
};

struct Entry {  // of the table in .eh_frame_hdr
    int32_t function;
    int32_t fde;
};

bool entry_at(const images::Image& image, uint64_t index, Entry* entry) {
    uint64_t word = 0;
    if (!safe_read::load(&word, image.table + index * sizeof(Entry))) return false;
    memcpy(entry, &word, sizeof word);
    return true;
}

// How many functions begin at or before the address; false if the table could not be read.
bool count_before(const images::Image& image, uint64_t address, uint64_t* count) {
    const auto wanted = static_cast<int64_t>(address - image.header);
    uint64_t low = 0;
    uint64_t high = image.entries;
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        Entry entry;
        if (!entry_at(image, middle, &entry)) return false;
        if (entry.function <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    *count = low;
    return true;
}

struct Cie {
    uint64_t code_alignment = 1;
    int64_t data_alignment = 1;
    uint64_t return_register = 0;
    uint8_t encoding = 0;  // of pointers to code
    bool augmented = false;
    bool signal = false;
    uint64_t instructions = 0;
    uint64_t end = 0;
};

// A CIE or an FDE: where it is, from its length on. False where there is none, or a huge one.
bool bounds(uint64_t at, uint64_t* begin, uint64_t* end) {
    uint64_t word = 0;
    if (!safe_read::load(&word, at)) return false;
    const auto length = static_cast<uint32_t>(word);
    if (length < 4 || length > kLongestEntry) return false;
    *begin = at + 4;
    *end = at + 4 + length;
    return true;
}

uint64_t pointer_size(uint8_t encoding) {
    switch (encoding & 0x07) {
        case 0x02:
            return 2;
        case 0x03:
            return 4;
        default:  // absolute, or of 8 bytes
            return 8;
    }
}

bool read_pointer(Cursor* from, uint8_t encoding, uint64_t* to) {
    const uint64_t place = from->at();
    uint64_t value = 0;
    switch (encoding & 0x0F) {
        case 0x00:
        case 0x04:
        case 0x0C:
            value = from->number<uint64_t>();
            break;
        case 0x02:
            value = from->number<uint16_t>();
            break;
        case 0x03:
            value = from->number<uint32_t>();
            break;
        case 0x0A:
            value = static_cast<uint64_t>(int64_t{from->number<int16_t>()});
            break;
        case 0x0B:
            value = static_cast<uint64_t>(int64_t{from->number<int32_t>()});
            break;
        default:
            return false;
    }
    if ((encoding & 0xF0) == 0x10)
        value += place;
    else if ((encoding & 0xF0) != 0)
        return false;
    *to = value;
    return !from->failed();
}

bool read_cie(uint64_t at, Cie* cie) {
    uint64_t begin = 0;
    if (!bounds(at, &begin, &cie->end)) return false;
    Cursor from(begin, cie->end);
    if (from.number<uint32_t>() != 0) return false;
    const auto version = from.number<uint8_t>();
    if (version != 1 && version != 3) return false;
    char augmentation[8] = {};
    for (char& letter : augmentation) {
        letter = static_cast<char>(from.number<uint8_t>());
        if (letter == 0) break;
    }
    if (augmentation[7] != 0 || (augmentation[0] != 0 && augmentation[0] != 'z')) return false;
    cie->code_alignment = from.uleb();
    cie->data_alignment = from.sleb();
    cie->return_register = version == 1 ? from.number<uint8_t>() : from.uleb();
    if (augmentation[0] == 'z') {
        cie->augmented = true;
        const uint64_t length = from.uleb();
        const uint64_t data = from.at();
        for (const char* letter = augmentation + 1; *letter; ++letter) {
            if (*letter == 'R') {
                cie->encoding = from.number<uint8_t>();
            } else if (*letter == 'P') {
                from.skip(pointer_size(from.number<uint8_t>()));
            } else if (*letter == 'L') {
                from.skip(1);
            } else if (*letter == 'S') {
                cie->signal = true;
            } else if (arch::kReturnOnStack || (*letter != 'B' && *letter != 'G')) {
                return false;
            }
        }
        if (length > cie->end - data || from.at() > data + length) return false;
        from.skip(data + length - from.at());
    }
    cie->instructions = from.at();
    return !from.failed() && cie->return_register == arch::kReturnColumn;
}

struct Column {
    enum class Kind : uint8_t { same, undefined, at_cfa, at_base, unknown };
    Kind kind = Kind::same;
    uint8_t base = 0;
    int64_t offset = 0;
};

struct Row {
    Location cfa;
    Column frame;
    Column other;
    Column others[arch::kLastPreserved - arch::kFirstPreserved + 1];
    Column return_address;  // where no register holds it

    Column* column(uint64_t number) {
        if (number >= arch::kFirstPreserved && number <= arch::kLastPreserved)
            return &others[number - arch::kFirstPreserved];
        return number == kFrame                ? &frame
               : number == kOther              ? &other
               : number == arch::kReturnColumn ? &return_address
                                               : nullptr;
    }
};

// How many words below the return address, without a gap, hold registers.
uint8_t count_pushed(const Row& row) {
    if (!arch::kReturnOnStack) return 0;
    uint32_t places = 0;
    const auto note = [&places](const Column& column) {
        const int64_t place = -column.offset / 8 - 2;  // the first is at CFA - 16
        if (column.kind == Column::Kind::at_cfa && place >= 0 && place < kMostPushed)
            places |= 1u << place;
    };
    note(row.frame);
    note(row.other);
    for (const Column& column : row.others) note(column);
    return static_cast<uint8_t>(__builtin_ctz(~places));
}

class Interpreter {
  public:
    Interpreter(const Cie& cie, uint64_t function, uint64_t address, uint64_t pc)
        : cie_(cie), location_(function), address_(address), pc_(pc) {}

    // False: an instruction that is not known, or broken ones.
    bool run(uint64_t begin, uint64_t end) {
        Cursor code(begin, end);
        while (!code.done() && !passed_ && known_) step(&code);
        return known_ && !code.failed();
    }
    void end_of_cie() { initial_ = row_; }
    const Row& row() const { return row_; }

  private:
    void advance(uint64_t delta) {
        const uint64_t next = location_ + delta * cie_.code_alignment;
        if (next > address_)
            passed_ = true;
        else
            location_ = next;
    }

    void set(uint64_t number, Column::Kind kind, int64_t offset = 0, uint8_t base = 0) {
        // The caller's is the CFA, or in the ucontext_t.
        if (number == kStack && !cie_.signal) known_ = false;
        if (Column* column = row_.column(number)) *column = {kind, base, offset};
    }

    void restore(uint64_t number) {
        if (Column* column = row_.column(number)) *column = *initial_.column(number);
    }

    void define_cfa(uint64_t base, int64_t offset) {
        row_.cfa = {};
        if (base >= kPc) return;
        row_.cfa.kind = Location::Kind::offset;
        row_.cfa.base = static_cast<uint8_t>(base);
        row_.cfa.offset = offset;
    }

    Location expression(Cursor* code) {
        const uint64_t length = code->uleb();
        if (code->failed() || length > code->end() - code->at()) {
            known_ = false;
            return {};
        }
        Cursor part(code->at(), code->at() + length);
        const Location found = evaluate(&part, pc_);
        code->skip(length);
        return found;
    }

    int64_t scaled(uint64_t value) const {
        return static_cast<int64_t>(value) * cie_.data_alignment;
    }
    int64_t scaled(int64_t value) const { return value * cie_.data_alignment; }

    void step(Cursor* code) {
        const auto operation = code->number<uint8_t>();
        const uint8_t low = operation & 0x3F;
        switch (operation & 0xC0) {
            case kAdvance:
                return advance(low);
            case kOffset:
                return set(low, Column::Kind::at_cfa, scaled(code->uleb()));
            case kRestore:
                return restore(low);
            default:
                break;
        }
        switch (operation) {
            case 0x00:
                return;
            case kSetLoc: {
                uint64_t next = 0;
                known_ = read_pointer(code, cie_.encoding, &next);
                if (next > address_)
                    passed_ = true;
                else
                    location_ = next;
                return;
            }
            case kAdvance1:
                return advance(code->number<uint8_t>());
            case kAdvance2:
                return advance(code->number<uint16_t>());
            case kAdvance4:
                return advance(code->number<uint32_t>());
            case kRememberState:
                if (remembered_ == kMostRemembered)
                    known_ = false;
                else
                    stack_[remembered_++] = row_;
                return;
            case kRestoreState:
                if (remembered_ == 0)
                    known_ = false;
                else
                    row_ = stack_[--remembered_];
                return;
            case kGnuArgsSize:
                code->uleb();
                return;
            case kNegateReturnState:
                if (arch::kReturnOnStack) known_ = false;
                return;
            default:
                return defines_cfa(operation) ? step_cfa(operation, code)
                                              : step_register(operation, code);
        }
    }

    static bool defines_cfa(uint8_t operation) {
        return (operation >= kDefCfa && operation <= kDefCfaExpression) || operation == kDefCfaSf ||
               operation == kDefCfaOffsetSf;
    }

    void step_cfa(uint8_t operation, Cursor* code) {
        const bool plain = row_.cfa.kind == Location::Kind::offset;
        switch (operation) {
            case kDefCfa: {
                const uint64_t base = code->uleb();
                return define_cfa(base, static_cast<int64_t>(code->uleb()));
            }
            case kDefCfaSf: {
                const uint64_t base = code->uleb();
                return define_cfa(base, scaled(code->sleb()));
            }
            case kDefCfaRegister:
                known_ = plain;
                return define_cfa(code->uleb(), row_.cfa.offset);
            case kDefCfaOffset:
                known_ = plain;
                row_.cfa.offset = static_cast<int64_t>(code->uleb());
                return;
            case kDefCfaOffsetSf:
                known_ = plain;
                row_.cfa.offset = scaled(code->sleb());
                return;
            default:
                row_.cfa = expression(code);
        }
    }

    void step_register(uint8_t operation, Cursor* code) {
        const uint64_t number = code->uleb();
        switch (operation) {
            case kOffsetExtended:
                return set(number, Column::Kind::at_cfa, scaled(code->uleb()));
            case kOffsetExtendedSf:
                return set(number, Column::Kind::at_cfa, scaled(code->sleb()));
            case kGnuNegativeOffset:
                return set(number, Column::Kind::at_cfa, -scaled(code->uleb()));
            case kRestoreExtended:
                return restore(number);
            case kUndefined:
                return set(number, Column::Kind::undefined);
            case kSameValue:
                return set(number, Column::Kind::same);
            case kInRegister:
                code->uleb();
                return set(number, Column::Kind::unknown);
            case kValOffset:
                code->uleb();
                return set(number, Column::Kind::unknown);
            case kValOffsetSf:
                code->sleb();
                return set(number, Column::Kind::unknown);
            case kExpression: {
                const Location at = expression(code);
                return at.kind == Location::Kind::offset
                           ? set(number, Column::Kind::at_base, at.offset, at.base)
                           : set(number, Column::Kind::unknown);
            }
            case kValExpression:
                expression(code);
                return set(number, Column::Kind::unknown);
            default:
                known_ = false;
        }
    }

    const Cie& cie_;
    uint64_t location_;
    uint64_t address_;
    uint64_t pc_;
    Row row_;
    Row initial_;
    Row stack_[kMostRemembered];
    int remembered_ = 0;
    bool passed_ = false;
    bool known_ = true;
};

Save reduce(const Column& column) {
    if (column.kind == Column::Kind::same) return {};
    if (column.offset < INT32_MIN || column.offset > INT32_MAX) return {Saved::unknown, 0};
    const auto offset = static_cast<int32_t>(column.offset);
    if (column.kind == Column::Kind::at_cfa) return {Saved::at_cfa, offset};
    if (column.kind == Column::Kind::at_base && column.base == kFrame)
        return {Saved::at_frame, offset};
    return {Saved::unknown, 0};
}

Rule reduce(const Row& row, const Cie& cie) {
    Rule rule;
    rule.frame = reduce(row.frame);
    rule.other = reduce(row.other);
    rule.pushed = count_pushed(row);
    const Column& back = arch::kReturnOnStack ? row.return_address : row.other;
    if (cie.signal) {
        // glibc's __restore_rt: all registers are in the ucontext_t at the stack pointer.
        if (arch::kReturnOnStack && row.cfa.kind == Location::Kind::deref &&
            row.cfa.base == kStack && row.cfa.displacement == kUcontextStackPointer &&
            row.cfa.offset == 0)
            rule.step = Step::signal;
        return rule;
    }
    if (back.kind == Column::Kind::undefined) {
        rule.step = Step::root;
        return rule;
    }
    if (arch::kReturnOnStack && (back.kind != Column::Kind::at_cfa || back.offset != -8))
        return rule;
    const Location& cfa = row.cfa;
    if (cfa.offset < INT32_MIN || cfa.offset > INT32_MAX || cfa.displacement < INT32_MIN ||
        cfa.displacement > INT32_MAX)
        return rule;
    rule.base = cfa.base;
    rule.offset = static_cast<int32_t>(cfa.offset);
    rule.displacement = static_cast<int32_t>(cfa.displacement);
    if (cfa.kind == Location::Kind::offset) rule.step = Step::offset;
    if (cfa.kind == Location::Kind::deref) rule.step = Step::deref;
    return rule;
}

}  // namespace

Rule find(const images::Image& image, uint64_t address, uint64_t pc, Gap* gap) {
    *gap = {image.start, image.end};
    uint64_t count = 0;
    if (image.entries == 0 || !count_before(image, address, &count)) return {};
    Entry entry;
    if (count < image.entries && entry_at(image, count, &entry))
        gap->end = image.header + static_cast<uint64_t>(int64_t{entry.function});
    if (count == 0 || !entry_at(image, count - 1, &entry)) return {};

    uint64_t begin = 0;
    uint64_t end = 0;
    if (!bounds(image.header + static_cast<uint64_t>(int64_t{entry.fde}), &begin, &end)) return {};
    Cursor from(begin, end);
    const auto back = from.number<uint32_t>();
    Cie cie;
    if (back == 0 || !read_cie(begin - back, &cie)) return {};
    uint64_t function = 0;
    uint64_t size = 0;
    if (!read_pointer(&from, cie.encoding, &function) ||
        !read_pointer(&from, cie.encoding & 0x0F, &size))
        return {};
    if (address < function || address - function >= size) {
        gap->start = function + size;
        return {};
    }
    *gap = {function, function + size};
    if (cie.augmented) from.skip(from.uleb());
    if (from.failed()) return {};
    Interpreter interpreter(cie, function, address, pc);
    if (!interpreter.run(cie.instructions, cie.end)) return {};
    interpreter.end_of_cie();
    if (!interpreter.run(from.at(), end)) return {};
    return reduce(interpreter.row(), cie);
}

}  // namespace tachograph::unwind::rows

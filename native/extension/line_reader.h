// Reads little-endian numbers and texts of an untrusted section, forward and within its bounds.
#pragma once

#include "tachograph/leb128.h"

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tachograph {

// After the end everything reads as 0 and as empty, and `failed` says so.
class LineReader {
  public:
    explicit LineReader(std::string_view bytes) : bytes_(bytes) {}

    bool failed() const { return failed_; }
    bool done() const { return failed_ || at_ >= bytes_.size(); }
    size_t at() const { return at_; }

    // The next bytes as a section of their own.
    std::string_view take(uint64_t size) {
        if (failed_ || size > bytes_.size() - at_) {
            failed_ = true;
            return {};
        }
        const std::string_view part = bytes_.substr(at_, size);
        at_ += size;
        return part;
    }

    template <typename T>
    T number() {
        T value{};
        if (failed_ || sizeof value > bytes_.size() - at_) {
            failed_ = true;
            return value;
        }
        memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }

    uint64_t unsigned_leb() {
        uint64_t value = 0;
        if (is_short()) return static_cast<uint8_t>(bytes_[at_++]);
        if (leb128::read_unsigned([this] { return number<uint8_t>(); }, &value)) return value;
        failed_ = true;
        return 0;
    }

    int64_t signed_leb() {
        int64_t value = 0;
        if (is_short()) return static_cast<int8_t>(static_cast<uint8_t>(bytes_[at_++]) << 1) >> 1;
        if (leb128::read_signed([this] { return number<uint8_t>(); }, &value)) return value;
        failed_ = true;
        return 0;
    }

    // A text that ends with 0.
    std::string_view text() {
        const size_t end = failed_ ? std::string_view::npos : bytes_.find('\0', at_);
        if (end == std::string_view::npos) {
            failed_ = true;
            return {};
        }
        const std::string_view found = bytes_.substr(at_, end - at_);
        at_ = end + 1;
        return found;
    }

    // A number of 4 bytes, or of 8 in DWARF's 64-bit form.
    uint64_t offset(bool wide) { return wide ? number<uint64_t>() : number<uint32_t>(); }

  private:
    // Whether a number of one byte comes: most are.
    bool is_short() const { return !done() && (bytes_[at_] & 0x80) == 0; }

    std::string_view bytes_;
    size_t at_ = 0;
    bool failed_ = false;
};

}  // namespace tachograph

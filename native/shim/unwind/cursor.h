// Reads a piece of foreign memory forward, byte by byte, through guarded copies.
#pragma once

#include "base/safe_read.h"
#include "tachograph/leb128.h"

#include <cstdint>
#include <cstring>

namespace tachograph::unwind {

// After the end, or a fault, everything reads as 0 and `failed` says so.
class Cursor {
  public:
    Cursor(uint64_t at, uint64_t end) : at_(at), end_(end) {}

    bool done() const { return failed_ || at_ >= end_; }
    bool failed() const { return failed_; }
    uint64_t at() const { return at_; }
    uint64_t end() const { return end_; }

    template <typename T>
    T number() {
        T value = 0;
        take(&value, sizeof value);
        return value;
    }

    uint64_t uleb() {
        uint64_t value = 0;
        if (leb128::read_unsigned([this] { return number<uint8_t>(); }, &value)) return value;
        failed_ = true;
        return 0;
    }

    int64_t sleb() {
        int64_t value = 0;
        if (leb128::read_signed([this] { return number<uint8_t>(); }, &value)) return value;
        failed_ = true;
        return 0;
    }

    void skip(uint64_t bytes) {
        if (bytes > end_ - at_) {
            failed_ = true;
            return;
        }
        at_ += bytes;
    }

  private:
    static constexpr uint64_t kWindow = 64;

    void take(void* to, uint64_t size) {
        if (failed_ || size > end_ - at_ || at_ > end_) {
            failed_ = true;
            return;
        }
        if (at_ < from_ || at_ + size > from_ + filled_) {
            filled_ = end_ - at_ < kWindow ? end_ - at_ : kWindow;
            from_ = at_;
            if (!safe_read::copy(window_, reinterpret_cast<const void*>(at_), filled_)) {
                failed_ = true;
                return;
            }
        }
        memcpy(to, window_ + (at_ - from_), size);
        at_ += size;
    }

    uint64_t at_;
    uint64_t end_;
    uint64_t from_ = 0;
    uint64_t filled_ = 0;
    bool failed_ = false;
    uint8_t window_[kWindow];
};

}  // namespace tachograph::unwind

#include "redundancy/block_content.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "tachograph/mixing.h"

namespace tachograph::redundancy::block_content {
namespace {

// What an allocator adds at the end, to round a size up, holds anything.
constexpr uint64_t kSlack = 32;
constexpr uint64_t kHead = 256;
constexpr uint64_t kWhole = 4096;  // of a larger block the first half of it, and pieces
constexpr uint64_t kPiece = 128;
constexpr uint64_t kPieces = 16;

constinit uint64_t g_key[2] = {0, 0};

uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }

// SipHash-1-3 of whole words (Aumasson and Bernstein, 2012).
class Sip {
  public:
    void add(uint64_t word) {
        v_[3] ^= word;
        round();
        v_[0] ^= word;
    }
    uint64_t end(uint64_t length) {
        add(length);
        v_[2] ^= 0xFF;
        for (int count = 0; count < 3; ++count) round();
        const uint64_t hash = v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
        return hash == 0 ? 1 : hash;  // 0 is for what is not known
    }

  private:
    void round() {
        v_[0] += v_[1];
        v_[1] = rotated(v_[1], 13) ^ v_[0];
        v_[0] = rotated(v_[0], 32);
        v_[2] += v_[3];
        v_[3] = rotated(v_[3], 16) ^ v_[2];
        v_[0] += v_[3];
        v_[3] = rotated(v_[3], 21) ^ v_[0];
        v_[2] += v_[1];
        v_[1] = rotated(v_[1], 17) ^ v_[2];
        v_[2] = rotated(v_[2], 32);
    }
    uint64_t v_[4] = {g_key[0] ^ 0x736f6d6570736575ull, g_key[1] ^ 0x646f72616e646f6dull,
                      g_key[0] ^ 0x6c7967656e657261ull, g_key[1] ^ 0x7465646279746573ull};
};

class Reading {
  public:
    bool add(uint64_t address, uint64_t size) {
        uint64_t words[kPiece / 8];
        for (uint64_t at = 0; at < size; at += sizeof words) {
            const uint64_t bytes = size - at < sizeof words ? size - at : sizeof words;
            if (!safe_read::copy(words, reinterpret_cast<const void*>(address + at), bytes))
                return false;
            for (uint64_t place = 0; place < bytes / 8; ++place) add(words[place]);
        }
        return true;
    }
    bool is_one_word() const { return !differs_; }
    uint64_t hash() { return sip_.end(count_); }

  private:
    void add(uint64_t word) {
        if (count_ == 0) first_ = word;
        differs_ = differs_ || word != first_;
        ++count_;
        sip_.add(word);
    }

    Sip sip_;
    uint64_t first_ = 0;
    uint64_t count_ = 0;
    bool differs_ = false;
};

uint64_t head_of(uint64_t address, uint64_t length) {
    Reading reading;
    return length > kHead && reading.add(address, kHead) ? reading.hash() : 0;
}

}  // namespace

void choose_key() {
    constexpr int kNonBlocking = 1;
    if (kernel::call(SYS_getrandom, kernel::address(g_key), sizeof g_key, kNonBlocking) ==
        sizeof g_key)
        return;
    uint64_t state = static_cast<uint64_t>(kernel::monotonic_ns());
    for (uint64_t& part : g_key) part = next_random(&state);
}

Content of(uint64_t address, uint64_t size) {
    if (size <= kSlack) return {};
    const uint64_t length = (size - kSlack) & ~uint64_t{7};
    if (length == 0) return {};
    Reading reading;
    if (length <= kWhole) {
        if (!reading.add(address, length)) return {};
    } else {
        const uint64_t first = kWhole / 2;
        if (!reading.add(address, first)) return {};
        // Whole words, the last piece at the end.
        const uint64_t step = (length - first - kPiece) / (kPieces - 1) & ~uint64_t{7};
        for (uint64_t piece = 0; piece < kPieces; ++piece)
            if (!reading.add(address + first + piece * step, kPiece)) return {};
    }
    if (reading.is_one_word()) return {};
    return {reading.hash(), head_of(address, length)};
}

}  // namespace tachograph::redundancy::block_content

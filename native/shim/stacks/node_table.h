// A tree's nodes, each found by its contents: lock-free, insert-only, in anonymous memory of its
// own.
#pragma once

#include "base/kernel.h"
#include "spool/own_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tachograph {

// Who writes the record of something that is found by many threads at once.
class Once {
  public:
    // True for the one caller that must write now; `done` tells whether it could. A failed write
    // may be tried again.
    bool claim() {
        uint8_t state = kUnwritten;
        return state_.load(std::memory_order_acquire) == kUnwritten &&
               state_.compare_exchange_strong(state, kWriting, std::memory_order_acq_rel);
    }
    bool is_done() const { return state_.load(std::memory_order_acquire) == kWritten; }
    void done(bool written) {
        state_.store(written ? kWritten : kUnwritten, std::memory_order_release);
    }

  private:
    enum : uint8_t { kUnwritten = 0, kWriting = 1, kWritten = 2 };
    std::atomic<uint8_t> state_;
};

// `Node` is made of zeros, has `same(const Key&)` and `set(const Key&)`, and a Once. Ids count from
// `base` on without gaps; those of nodes that two threads made at once are left out.
template <typename Node, typename Key>
class NodeTable {
  public:
    static constexpr uint32_t kFull = 0xFFFFFFFFu;
    // Behind this no table begins: its last ids must be less than kFull.
    static constexpr uint32_t kLastBase = 0xF0000000u;

    // A tight RLIMIT_AS gets a smaller table instead of none.
    bool open(uint32_t most, uint32_t fewest) {
        if (nodes_) return true;
        for (uint32_t capacity = most; capacity >= fewest; capacity /= 4) {
            if (!kernel::map_for_one_process(&nodes_, sizeof(Node) * capacity)) continue;
            const uint32_t slots = slots_for(capacity);
            if (kernel::map_for_one_process(&slots_, sizeof(uint32_t) * slots)) {
                capacity_ = capacity;
                all_slots_ = slots;
                limit_.store(capacity, std::memory_order_relaxed);
                own_memory::note(nodes_, sizeof(Node) * capacity, &used_, sizeof(Node));
                own_memory::note(slots_, sizeof(uint32_t) * slots, &reached_, sizeof(uint32_t));
                return true;
            }
            kernel::call(SYS_munmap, kernel::address(nodes_),
                         static_cast<long>(sizeof(Node) * capacity));
            nodes_ = nullptr;
        }
        return false;
    }

    bool is_open() const { return nodes_ != nullptr; }

    // While no other thread uses it. False if it could not be emptied.
    bool clear() {
        const bool empty = used_.load(std::memory_order_relaxed) == 0;  // nothing was ever written
        if (!empty && (!kernel::clear_for_one_process(nodes_, sizeof(Node) * capacity_) ||
                       !kernel::clear_for_one_process(slots_, sizeof(uint32_t) * all_slots_)))
            return false;
        used_.store(0, std::memory_order_relaxed);
        reached_.store(0, std::memory_order_relaxed);
        limit_.store(capacity_, std::memory_order_relaxed);
        return true;
    }

    uint32_t base() const { return base_; }
    // While it is empty and no other thread uses it.
    void set_base(uint32_t base) { base_ = base; }

    // The id at which the next table may begin: threads that still work here get few more nodes.
    uint32_t close() {
        const uint32_t used = used_.load(std::memory_order_relaxed);
        const uint32_t limit = used < capacity_ - kLastNodes ? used + kLastNodes : capacity_;
        limit_.store(limit, std::memory_order_seq_cst);
        return base_ + limit;
    }
    bool may_close() const { return capacity_ > kLastNodes && base_ < kLastBase; }

    bool nearly_full() const { return used_.load(std::memory_order_relaxed) > capacity_ / 4 * 3; }

    Node& at(uint32_t id) { return nodes_[id - base_]; }

    // Fetches the place where a node of this hash most likely is.
    void prefetch(uint64_t hash) const {
        const bool in_first = used_.load(std::memory_order_relaxed) < kFirstLevel / 2;
        const uint32_t place =
            in_first ? hash & (kFirstLevel - 1) : kFirstLevel + (hash & (behind(kFirstLevel) - 1));
        __builtin_prefetch(&slots_[place]);
    }

    // The id of the node with these contents, kFull if there is no room for it. `last_room`: it may
    // take what the others leave free.
    uint32_t intern(const Key& key, uint64_t hash, bool last_room = false) {
        uint32_t mine = kFull;  // a node made ahead of its publication
        uint32_t first = 0;
        const bool few = used_.load(std::memory_order_relaxed) < kFewNodes;
        for (uint32_t level = kFirstLevel; first < all_slots_;
             first += level, level = behind(level)) {
            const uint32_t probes = level == kFirstLevel         ? kFirstProbes
                                    : first + level < all_slots_ ? kProbesPerLevel
                                                                 : kProbes;
            for (uint32_t probe = 0; probe < probes; ++probe) {
                std::atomic<uint32_t>& slot = slots_[first + ((hash + probe) & (level - 1))];
                uint32_t found = few ? claim(slot) : slot.load(std::memory_order_acquire);
                if (found == 0) {
                    if (mine == kFull) {
                        mine = make(key, last_room);
                        if (mine == kFull) return kFull;
                    }
                    reach(first + level);
                    if (slot.compare_exchange_strong(found, mine + 1, std::memory_order_acq_rel))
                        found = mine + 1;
                }
                // Another thread may have published the same node: then ours stays unused.
                if (nodes_[found - 1].same(key)) return base_ + found - 1;
            }
        }
        return kFull;
    }

  private:
    static constexpr uint32_t kProbes = 256;
    // A hash table touches its pages at random, so the slots are several tables, each larger than
    // the one before: a program with few nodes touches few pages, and one that has just begun, as
    // many forked children never grow out of, a single one. A node is in a later one only if its
    // places in all before were taken.
    static constexpr uint32_t kFirstLevel = 1u << 10;
    static constexpr uint32_t kSecondLevel = 1u << 14;
    static constexpr uint32_t kFirstProbes = 4;
    static constexpr uint32_t kProbesPerLevel = 16;
    static constexpr uint32_t kFewNodes = kFirstLevel / 2;

    static constexpr uint32_t behind(uint32_t level) {
        return level == kFirstLevel ? kSecondLevel : level * 4;
    }

    // What is in a slot. A page that is only read before it is stored to faults twice, and in a
    // process that has just begun nearly every slot is of a new page.
    static uint32_t claim(std::atomic<uint32_t>& slot) {
        uint32_t found = 0;
        slot.compare_exchange_strong(found, 0, std::memory_order_acq_rel);
        return found;
    }

    // Room for all levels: the last takes nearly all of the nodes, and is not filled to the brim.
    static uint32_t slots_for(uint32_t nodes) {
        uint32_t all = 0;
        for (uint32_t level = kFirstLevel; all < nodes + nodes / 4; level = behind(level))
            all += level;
        return all;
    }

    // The slots behind it were never written.
    void reach(uint32_t end) {
        if (reached_.load(std::memory_order_relaxed) < end)
            reached_.store(end, std::memory_order_relaxed);
    }

    uint32_t make(const Key& key, bool last_room) {
        const uint32_t room = last_room ? capacity_ : capacity_ - capacity_ / 16;
        const uint32_t limit = limit_.load(std::memory_order_relaxed);
        const uint32_t most = room < limit ? room : limit;
        if (used_.load(std::memory_order_relaxed) >= most) return kFull;
        const uint32_t id = used_.fetch_add(1, std::memory_order_relaxed);
        if (id >= limit) return kFull;
        nodes_[id].set(key);
        return id;
    }

    static constexpr uint32_t kLastNodes = 16384;

    Node* nodes_ = nullptr;
    std::atomic<uint32_t>* slots_ = nullptr;  // place of a node + 1, 0 = free
    uint32_t capacity_ = 0;
    uint32_t all_slots_ = 0;  // of all levels
    uint32_t base_ = 0;
    std::atomic<uint32_t> used_{0};
    std::atomic<uint32_t> reached_{0};
    std::atomic<uint32_t> limit_{0};
};

}  // namespace tachograph

// Finds the pages of an address range that are in memory, without a look at each page that is not:
// most of what a program reserves is never touched.
//
// PAGEMAP_SCAN (since Linux 6.7) passes over what has no page tables, terabytes at a time. Where it
// is not there, mincore is asked for some megabytes at a time. Neither needs a lock, and no answer
// is older than the scan.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph {

// How long something may go on, in this thread: the CPU time that it may take, since a thread that
// waits for a processor does nothing that could be spared; and, as it may wait for a lock of the
// kernel's, kMostWaits times as long in all. The recorder's own thread ends it early where that
// thread is waited for.
class TimeLimit {
  public:
    explicit TimeLimit(int64_t length_ns, bool ends_for_helper = false);

    bool over() const;

  private:
    static constexpr int64_t kMostWaits = 10;

    int64_t soon_ns_;
    int64_t at_last_ns_;
    int64_t cpu_ns_;
    bool ends_for_helper_;
};

class PageScan {
  public:
    // `opens`: a descriptor may be taken for as long as the scan is there. Not in a hook, whose
    // thread may be about to get that number.
    explicit PageScan(bool opens);
    ~PageScan();
    PageScan(const PageScan&) = delete;
    PageScan& operator=(const PageScan&) = delete;

    struct Run {
        uintptr_t begin;
        uintptr_t end;
        bool any() const { return begin < end; }
    };
    // The first run of pages in memory at or behind `at` and before `end`; an empty one: there is
    // none, or the time is over (`late`).
    Run next(uintptr_t at, uintptr_t end, const TimeLimit& limit);
    bool late() const { return late_; }

  private:
    static constexpr size_t kMostRuns = 32;
    // As the kernel has them.
    struct KernelRun {
        uint64_t begin;
        uint64_t end;
        uint64_t categories;
    };

    void fill(uintptr_t at, uintptr_t end);
    bool ask_pagemap(uintptr_t at, uintptr_t end);
    void ask_mincore(uintptr_t at, uintptr_t end);

    long pagemap_ = -1;
    bool late_ = false;
    // What is known of [from_, to_).
    uintptr_t from_ = 0;
    uintptr_t to_ = 0;
    size_t count_ = 0;
    KernelRun runs_[kMostRuns];
};

}  // namespace tachograph

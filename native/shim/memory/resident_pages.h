// Which pages are in memory: what the kernel says (PageScan), and what is known of reserved address
// space since it was last asked (resident_pages).
#pragma once

#include "base/pages.h"

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

// How long a scan of pages may take that the program waits for: where recording is paused, and
// where a process ends or is replaced by another program.
//
// A part of the time since the last one. A child of a moment, as a server forks them, is held up by
// next to nothing; a program that has run for long has time for all of its memory.
class TimeShare {
  public:
    void begin(int64_t now_ns) { since_ns_ = now_ns; }
    // What has added up is taken.
    TimeLimit take(int64_t now_ns) {
        const int64_t part = since_ns_ == 0 ? 0 : (now_ns - since_ns_) / kParts;
        since_ns_ = now_ns;
        return TimeLimit(part < kLeastNs ? kLeastNs : part > kMostNs ? kMostNs : part);
    }

  private:
    static constexpr int64_t kParts = 20;
    static constexpr int64_t kLeastNs = 2'000'000;
    static constexpr int64_t kMostNs = 20'000'000;

    int64_t since_ns_ = 0;
};

// Finds the pages of an address range that are in memory, without a look at each page that is not:
// most of what a program reserves is never touched.
//
// PAGEMAP_SCAN (since Linux 6.7) passes over what has no page tables, terabytes at a time. Where it
// is not there, mincore is asked for some megabytes at a time. Neither needs a lock, and no answer
// is older than the scan.
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

// One bit for each page of reserved address space, or each 4 KiB of a larger page, in regions of 32
// MiB that take up room from their first page on. The kernel is asked for a part of 2 MiB at a
// time, by any thread. All else is not for several threads at once: the caller has a lock
// (page_looks.h).
namespace tachograph::resident_pages {

inline constexpr uintptr_t kPage = pages::kPiece;
inline constexpr uintptr_t kRegion = uintptr_t{32} << 20;
inline constexpr uintptr_t kPart = uintptr_t{2} << 20;
inline constexpr size_t kPartPages = kPart / kPage;

inline uintptr_t region_of(uintptr_t address) { return address & ~(kRegion - 1); }
inline uintptr_t part_of(uintptr_t address) { return address & ~(kPart - 1); }

// The pages of one part that are in memory, a bit for each.
struct Answer {
    uint64_t words[kPartPages / 64];
};

// What is told of every page that came or went.
struct Visitor {
    void (*came)(void* context, uintptr_t page);
    void (*went)(void* context, uintptr_t page);
    void* context;
};

struct Change {
    size_t came = 0;  // pages
    size_t went = 0;
    bool known = true;  // false: there is no room to keep what came
};

bool open();
// Asks the kernel which pages of [begin, end) are in memory; the two are of one part. Needs no
// lock: the answer is of a moment, and may be old when it is used.
Answer ask(uintptr_t begin, uintptr_t end);
// Whether all pages of [begin, end) are known to be in memory; the two are of one part.
bool full(uintptr_t begin, uintptr_t end);
// Whether none is.
bool empty(uintptr_t begin, uintptr_t end);
// Whether any page of a region is known to be in memory.
bool any(uintptr_t base);
// The first region from place `*place` of the table on of which any page is known to be in memory;
// `*place` is behind it then. 0: there is none.
uintptr_t next_region(size_t* place);
// How many pages of [begin, end) have come since it was last compared.
size_t news(uintptr_t begin, uintptr_t end, const Answer& answer);
// `learn`: the pages that came are known from now on and told of, else only counted. Those that
// went are known and told of in any case.
Change compare(uintptr_t begin, uintptr_t end, const Answer& answer, bool learn,
               const Visitor& visitor);
// The pages of [begin, end) are gone, or about to go.
void forget(uintptr_t begin, uintptr_t end, const Visitor& visitor);

}  // namespace tachograph::resident_pages

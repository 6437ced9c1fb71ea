// A look at reserved address space: the kernel is asked which pages are there, and what came or
// went since the last look is counted, sampled and charged. What costs time is what is in memory,
// or was; and no look takes longer than it may.
//
// A thread may look at any time, also in a signal handler. The kernel's answer is of no use if the
// pages have been compared meanwhile: then it is asked again, a few times.
#pragma once

#include "memory/resident_pages.h"
#include "spool/layout.h"
#include "tachograph/api.h"

#include <cstddef>
#include <cstdint>

namespace tachograph::page_looks {

// A page that has come into memory, and who is charged with it.
struct Page {
    uint32_t thread = kNone;
    uint32_t stack = kNone;
    uint8_t stack_state = TG_STACK_UNSEEN;
    uint64_t pc = 0;
};

// Who is charged with all of a mapping's pages: where that is not known, it is who looks, and of
// the page only the `pc` counts: where it was mapped.
struct Owner {
    bool known = false;
    Page page{};
};

struct Range {
    uintptr_t begin;
    uintptr_t end;
    Owner owner{};
};

// The lock of all that is known of reserves. Held for some microseconds only: the kernel is asked
// without it, so a thread that has to wait for a processor seldom has it. Not waited for without
// end, as the holder may have been killed, nor at all by a signal handler that has interrupted the
// holder.
class Hold {
  public:
    explicit Hold(int tries);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    explicit operator bool() const { return held_; }

  private:
    bool held_ = false;
};

// Who is charged with what came. The stack is looked for when it is needed.
struct Charge {
    enum class Way : uint8_t { own, given, none } way = Way::none;
    const void* caller = nullptr;
    Page page{};
    bool ready = false;

    void prepare();
};

// Which pages a look asks for: what may have come, what may have gone, or both.
enum class Seeks : uint8_t { growth, decline, all };

// How far a look at all has come that is made in several goes.
struct Progress {
    size_t region = 0;  // of those of which pages are known
    uintptr_t at = 0;
};

struct Look {
    Charge* charge;
    bool learn;  // pages that came are counted and charged; else only how many there are is told
    Seeks seeks;
    int tries;
    TimeLimit limit;
    bool opens = false;  // of the scan (resident_pages.h)
    // Asked of each part between the kernel's answer and the charge: false ends the look, as pages
    // may have come that are not to be charged there.
    bool (*still)(void* context) = nullptr;
    void* context = nullptr;
};

struct Found {
    size_t came = 0;    // pages
    bool whole = true;  // all that was asked for was looked at
    bool late = false;  // not, as the time was over

    void add(const Found& more) {
        came += more.came;
        whole = whole && more.whole;
        late = late || more.late;
    }
};

// What is reserved of [begin, end), and has grown.
Found growth(uintptr_t begin, uintptr_t end, const Look& look);
// All that is reserved. It begins where an earlier one has come to, which was late; `progress` is
// that, or how far this one has come.
Found all(const Look& look, Progress* progress = nullptr);
// Where it grew lately, and behind what is full.
Found active(const Look& look);

// Bytes of all that is reserved.
uintptr_t span();

// The list of address space that the program reserved, and who is charged with each piece of it.
// Not for several threads at once: the caller has the lock.
namespace ranges {

size_t count();
// Bytes of all ranges together.
uintptr_t span();
const Range& at(size_t index);
// The range that [begin, end) lies in; nullptr: it lies in none, or in several.
const Range* holding(uintptr_t begin, uintptr_t end);
// The first piece of a range that is not before `address` and lies in one of the parts that pages
// are asked for in (resident_pages.h); false: there is none.
bool part_from(uintptr_t address, Range* part);
// The first range that ends behind `address`; nullptr: there is none.
const Range* first_behind(uintptr_t address);

// [begin, end) is in none of them before; neighbours without an owner that were
// mapped at one place become one. False: the list
// is full, which is counted.
bool add(const Range& range);
void cut(uintptr_t begin, uintptr_t end);

}  // namespace ranges

// The following are for the thread that holds the lock.

// False: there is no room for the tables, or the list of ranges is full.
bool add(const Range& range);
void cut(uintptr_t begin, uintptr_t end);
// The pages of [begin, end) are gone, or about to go.
void forget(uintptr_t begin, uintptr_t end);

void after_fork_in_child();

}  // namespace tachograph::page_looks

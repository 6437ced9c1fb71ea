// The executable mappings of the process, sorted, with where their unwind rows are. Made outside of
// signal handlers, read inside.
#pragma once

#include "base/process_maps.h"

#include <cstdint>

namespace tachograph::unwind::images {

struct Image {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t header = 0;  // .eh_frame_hdr, from which its table counts; 0: there is none
    uint64_t table = 0;   // pairs of 32-bit offsets: function, FDE
    uint64_t entries = 0;
    // greenlet's: what lies beyond its frames on the stack belongs to whatever ran there before.
    bool switches = false;
};

// Makes room for the tables. False if there is no memory.
bool open();
// Whether there is room for them.
bool are_kept();
// In a forked child: no thread reads any more that did in the parent.
void forget();

// A new table, by one thread at a time: begin, add the executable mappings in any order, publish.
// `begin` is false while the old tables are still read by others, or while a library is being
// closed: then later.
bool begin();
void add(const process_maps::Mapping& mapping);
void publish();

// Around dlclose: what was published before is not to be trusted until a table is made after it.
void closing();
void closed();
// It was only one user less, and all images are where they were.
void stayed();

// Keeps the published table in place as long as it lives. Safe in signal handlers.
class Reading {
  public:
    Reading();
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    // Whether there is a table that holds now.
    explicit operator bool() const { return images_ != nullptr; }
    // nullptr if no image is known there.
    const Image* find(uint64_t pc) const;
    // Whether an address lies between the first image and the last.
    bool spans(uint64_t pc) const {
        return count_ > 0 && pc >= images_[0].start && pc < images_[count_ - 1].end;
    }
    // Changes whenever an image of an earlier table is gone: what is known of its code is void.
    uint16_t generation() const { return generation_; }

  private:
    const Image* images_ = nullptr;
    uint32_t count_ = 0;
    uint32_t table_ = 0;
    uint16_t generation_ = 0;
};

}  // namespace tachograph::unwind::images

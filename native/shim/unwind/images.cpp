#include "unwind/images.h"

#include "base/kernel.h"
#include "base/safe_read.h"
#include "spool/own_memory.h"

#include <elf.h>
#include <atomic>
#include <cstring>

namespace tachograph::unwind::images {
namespace {

constexpr uint32_t kMostImages = 4096;
constexpr uint32_t kTables = 3;
constexpr uint32_t kNoTable = kTables;
constexpr int kMostPrograms = 64;

// Encodings of .eh_frame_hdr (Linux Standard Base, "Exception Frame Header"): every linker writes
// these, and others are not searched.
constexpr uint8_t kUnsigned4 = 0x03;
constexpr uint8_t kSignedFromHeader4 = 0x3B;

struct Table {
    Image* images = nullptr;
    uint32_t count = 0;
    uint16_t generation = 0;
    uint64_t closes = 0;  // libraries that had been closed when it was begun
    std::atomic<uint32_t> readers{0};
};

struct State {
    Table tables[kTables];
    std::atomic<uint32_t> published{kNoTable};
    std::atomic<uint64_t> closes_begun{0};
    std::atomic<uint64_t> closes_done{0};
    uint32_t building = kNoTable;
};
constinit State g;

template <typename T>
bool load(T* to, uint64_t from) {
    return safe_read::copy(to, reinterpret_cast<const void*>(from), sizeof *to);
}

// The program header of a type, and by how much the image was moved from its own addresses.
bool find_program(uint64_t base, uint32_t type, Elf64_Phdr* found, uint64_t* moved) {
    Elf64_Ehdr header;
    if (!load(&header, base) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    bool placed = false;
    bool any = false;
    for (int i = 0; i < header.e_phnum && i < kMostPrograms; ++i) {
        Elf64_Phdr program;
        if (!load(&program, base + header.e_phoff + static_cast<uint64_t>(i) * sizeof program))
            return false;
        if (program.p_type == PT_LOAD && !placed) {
            *moved = base - (program.p_vaddr - program.p_offset);
            placed = true;
        }
        if (program.p_type == type) {
            *found = program;
            any = true;
        }
    }
    return placed && any;
}

void find_rows(uint64_t base, Image* image) {
    Elf64_Phdr program{};
    uint64_t moved = 0;
    if (!find_program(base, PT_GNU_EH_FRAME, &program, &moved)) return;
    const uint64_t header = moved + program.p_vaddr;
    uint8_t start[12];
    if (!load(&start, header) || start[0] != 1 || start[2] != kUnsigned4 ||
        start[3] != kSignedFromHeader4)
        return;
    // The pointer to .eh_frame before the count is of 4 bytes in all encodings of 4.
    if ((start[1] & 0x07) != 0x03) return;
    uint32_t entries;
    memcpy(&entries, start + 8, sizeof entries);
    if (program.p_memsz < 12 || entries > (program.p_memsz - 12) / 8) return;
    image->header = header;
    image->table = header + 12;
    image->entries = entries;
}

bool switches_stacks(const process_maps::Mapping& mapping) {
    constexpr char kName[] = "/_greenlet.";
    return memmem(mapping.path, mapping.path_length, kName, sizeof kName - 1) != nullptr;
}

bool same(const Image& a, const Image& b) {
    return a.start == b.start && a.end == b.end && a.header == b.header && a.entries == b.entries;
}

// Whether every image of the old table is in the new one. Both are sorted.
bool all_kept(const Table& before, const Table& now) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < before.count; ++i) {
        while (at < now.count && now.images[at].start < before.images[i].start) ++at;
        if (at >= now.count || !same(now.images[at], before.images[i])) return false;
    }
    return true;
}

}  // namespace

bool open() {
    for (Table& table : g.tables)
        if (!table.images && !own_memory::map(&table.images, sizeof(Image) * kMostImages))
            return false;
    return true;
}

bool are_kept() { return g.tables[kTables - 1].images != nullptr; }

void forget() {
    for (Table& table : g.tables) table.readers.store(0);
    g.building = kNoTable;
    g.closes_done.store(g.closes_begun.load());  // the thread that closed one is not here
}

bool begin() {
    if (!are_kept()) return false;
    const uint64_t closes = g.closes_done.load(std::memory_order_seq_cst);
    if (g.closes_begun.load(std::memory_order_seq_cst) != closes) return false;
    const uint32_t published = g.published.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < kTables; ++i) {
        if (i == published || g.tables[i].readers.load(std::memory_order_seq_cst) != 0) continue;
        g.building = i;
        g.tables[i].count = 0;
        g.tables[i].closes = closes;
        return true;
    }
    return false;
}

void add(const process_maps::Mapping& mapping) {
    if (g.building == kNoTable) return;
    Table& table = g.tables[g.building];
    if (table.count >= kMostImages) return;
    Image image;
    image.start = mapping.start;
    image.end = mapping.end;
    image.switches = switches_stacks(mapping);
    if (mapping.image != 0) find_rows(mapping.image, &image);
    // The kernel lists them in order; kept so if it should not.
    uint32_t at = table.count++;
    while (at > 0 && table.images[at - 1].start > image.start) {
        table.images[at] = table.images[at - 1];
        --at;
    }
    table.images[at] = image;
}

void publish() {
    if (g.building == kNoTable) return;
    Table& table = g.tables[g.building];
    const uint32_t before = g.published.load(std::memory_order_relaxed);
    if (before != kNoTable) {
        const Table& old = g.tables[before];
        const bool kept = old.closes == table.closes && all_kept(old, table);
        table.generation = static_cast<uint16_t>(old.generation + (kept ? 0 : 1));
    }
    g.published.store(g.building, std::memory_order_seq_cst);
    g.building = kNoTable;
}

void closing() { g.closes_begun.fetch_add(1, std::memory_order_seq_cst); }
void stayed() { g.closes_begun.fetch_sub(1, std::memory_order_seq_cst); }
void closed() { g.closes_done.fetch_add(1, std::memory_order_seq_cst); }

Reading::Reading() : table_(g.published.load(std::memory_order_acquire)) {
    if (table_ == kNoTable) return;
    Table& table = g.tables[table_];
    table.readers.fetch_add(1, std::memory_order_seq_cst);
    // It may have been taken for the next one before we were counted.
    if (g.published.load(std::memory_order_seq_cst) != table_ ||
        g.closes_begun.load(std::memory_order_seq_cst) != table.closes) {
        table.readers.fetch_sub(1, std::memory_order_release);
        table_ = kNoTable;
        return;
    }
    images_ = table.images;
    count_ = table.count;
    generation_ = table.generation;
}

Reading::~Reading() {
    if (table_ != kNoTable) g.tables[table_].readers.fetch_sub(1, std::memory_order_release);
}

const Image* Reading::find(uint64_t pc) const {
    uint32_t low = 0;
    uint32_t high = count_;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (images_[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count_ && images_[low].start <= pc ? &images_[low] : nullptr;
}

}  // namespace tachograph::unwind::images

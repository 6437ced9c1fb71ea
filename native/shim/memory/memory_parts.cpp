#include "memory/memory_parts.h"

#include "base/bounded_lock.h"
#include "base/fault.h"
#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/large_data.h"
#include "base/pages.h"
#include "base/process_maps.h"
#include "base/safe_read.h"
#include "base/sandbox.h"
#include "memory/counters.h"
#include "memory/footprint.h"
#include "memory/known_pools.h"
#include "memory/library_allocators.h"
#include "memory/malloc_chunks.h"
#include "memory/page_looks.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/modules.h"
#include "stacks/stack_capture.h"

#include <sys/resource.h>
#include <atomic>
#include <cstring>

namespace tachograph::memory_parts {
namespace {

using process_maps::Mapping;

constexpr int64_t kLeastNs = 1'000'000'000;
constexpr int64_t kLookNs = 250'000'000;  // between two questions for the resident set
constexpr int64_t kSilenceNs = 10'000'000'000;
constexpr int64_t kCost = 400;  // at most one in so many parts of the time
constexpr int64_t kEndCost = 50;
constexpr int64_t kLongestEndNs = 100'000'000;
constexpr int64_t kYoungNs = 250'000'000;  // the end of a younger process is not held up
constexpr int64_t kPageNs = 25;            // what 4 KiB may take, before that is known
constexpr int64_t kNoticeable = 1 << 20;
constexpr int64_t kUnknown = -1;
constexpr int64_t kWorthAsking = 4 << 20;  // of a library's allocator
// glibc's further heaps begin at a multiple of this with a header, and do not reach beyond it.
constexpr uintptr_t kHeapSpan = uintptr_t{64} << 20;
constexpr uintptr_t kHeapHeaders[2] = {0x20, 0x40};  // where a heap's first arena may lie in it
constexpr size_t kMostReserved = 24;                 // callers that are told apart
constexpr size_t kMostHeaps = 64;                    // whose chunks are looked at
constexpr uint32_t kMostChunks = 1 << 22;
constexpr int64_t kLongestChunksNs = 40'000'000;
constexpr int kTries = 200;

struct Sizes {
    int64_t size = 0;
    int64_t resident = 0;
    int64_t anonymous = 0;
    int64_t priv = 0;
    int64_t private_anonymous = 0;
    int64_t proportional = 0;
    int64_t swapped = 0;
    int64_t lazily_free = 0;

    void add(const Sizes& more) {
        size += more.size;
        resident += more.resident;
        anonymous += more.anonymous;
        priv += more.priv;
        private_anonymous += more.private_anonymous;
        proportional += more.proportional;
        swapped += more.swapped;
        lazily_free += more.lazily_free;
    }
    // As much of it as `part` of `whole` is; the rest stays.
    Sizes take(int64_t part, int64_t whole) {
        Sizes taken;
        const auto move = [&](int64_t* from, int64_t* to) {
            *to = whole <= 0 ? 0
                             : static_cast<int64_t>(static_cast<double>(*from) *
                                                    static_cast<double>(part) /
                                                    static_cast<double>(whole));
            *from -= *to;
        };
        move(&resident, &taken.resident);
        move(&anonymous, &taken.anonymous);
        move(&priv, &taken.priv);
        move(&private_anonymous, &taken.private_anonymous);
        move(&proportional, &taken.proportional);
        move(&swapped, &taken.swapped);
        move(&lazily_free, &taken.lazily_free);
        return taken;
    }
};

struct Reserved {
    uint64_t pc = 0;
    Sizes sizes;
};

struct MallocHeap {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    MemoryPart part = MemoryPart::heap;
};

struct HeapChunks {
    malloc_chunks::Sparse sparse;
    bool known = true;
};

constexpr size_t kParts = static_cast<size_t>(MemoryPart::recorder) + 1;

struct Reading {
    Sizes parts[kParts];
    Reserved reserved[kMostReserved];
    size_t reserved_count = 0;
    int64_t pools_resident = 0;
    int64_t pools_size = 0;
    int64_t pools_live = 0;
    bool pools_known = true;
    int64_t sparse = 0;
    int64_t sparse_live = 0;
    MallocHeap heaps[kMostHeaps];
    size_t heaps_count = 0;
    HeapChunks chunks[2];  // of the heap, and of the further ones
    // Of the mapping whose lines are read.
    Mapping mapping;
    MemoryPart part = MemoryPart::anonymous;
    bool open = false;
    library_allocators::Use libraries[library_allocators::kMost];
    size_t libraries_count = 0;
    uintptr_t below_end = 0;  // the end of the mapping before, and whether that may not be touched
    bool below_is_guard = false;
    Sizes sizes;
};

struct State {
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::atomic<bool> forked{false};
    // Of the thread that is at it.
    int64_t began_ns = 0;
    int64_t read_ns = 0;
    int64_t looked_ns = 0;
    int64_t took_ns = 0;
    int64_t chunks_ns = 0;       // when chunks were looked at
    int64_t chunks_took_ns = 0;  // and for how long
    int64_t resident = 0;        // then
    int64_t mappings = 0;        // as the caller has told
    Reading reading;
};
constinit TG_LARGE_DATA State g;
constinit TG_LARGE_ZEROS char g_text[16 * 1024] = {};

Sizes* of(MemoryPart part) { return &g.reading.parts[static_cast<size_t>(part)]; }

int64_t resident_of(uintptr_t begin, uintptr_t end) {
    return static_cast<int64_t>(pages::resident(begin, end));
}

bool has_path(const Mapping& mapping, const char* begin) {
    const size_t length = strlen(begin);
    return mapping.path_length >= length && memcmp(mapping.path, begin, length) == 0;
}

bool is_shared_memory(const Mapping& mapping) {
    return has_path(mapping, "/dev/shm/") || has_path(mapping, "/memfd:") ||
           has_path(mapping, "/SYSV") || has_path(mapping, "/dev/zero") ||
           has_path(mapping, "[anon_shmem");
}

// Whether one of glibc's further heaps begins there: it says which arena it is of, and that lies in
// the first heap of that arena. A page that was never touched is not read: that would bring it into
// memory.
bool begins_heap(uintptr_t address) {
    uint64_t arena = 0;
    if (g.mappings < 0 || resident_of(address, address + pages::kPiece) == 0 ||
        !safe_read::load(&arena, address))
        return false;
    const uintptr_t place = arena & (kHeapSpan - 1);
    return arena >= kHeapSpan && place >= kHeapHeaders[0] && place <= kHeapHeaders[1];
}

MemoryPart part_of(const Mapping& mapping) {
    const uintptr_t begin = mapping.start;
    if (spool::is_mapped(begin)) return MemoryPart::recorder;
    if (is_shared_memory(mapping)) return MemoryPart::shared;
    if (mapping.path_length > 0 && mapping.path[0] == '/') return MemoryPart::files;
    if (has_path(mapping, "[heap]")) return MemoryPart::heap;
    if (has_path(mapping, "[stack")) return MemoryPart::stacks;
    if (mapping.path_length > 0 && !has_path(mapping, "[anon")) return MemoryPart::files;
    if (mapping.shared) return MemoryPart::shared;
    const own_memory::Range left = own_memory::first_outside({mapping.start, mapping.end});
    if (2 * (left.end - left.begin) < mapping.end - mapping.start) return MemoryPart::recorder;
    // A thread's stack grows down to a page that may not be touched.
    if (g.reading.below_is_guard && g.reading.below_end == begin && mapping.writable)
        return MemoryPart::stacks;
    return MemoryPart::anonymous;
}

HeapChunks& chunks_of(MemoryPart part) {
    return g.reading.chunks[part == MemoryPart::heap ? 0 : 1];
}

// To look at its chunks later. Not of one that is partly in swap: it would be read into memory.
void note_heap(uintptr_t begin, uintptr_t end, MemoryPart part) {
    Reading& reading = g.reading;
    if (reading.heaps_count == kMostHeaps || reading.sizes.swapped > 0)
        chunks_of(part).known = false;
    else
        reading.heaps[reading.heaps_count++] = {begin, end, part};
}

Sizes* reserved_by(uint64_t pc) {
    Reading& reading = g.reading;
    for (size_t i = 0; i < reading.reserved_count; ++i)
        if (reading.reserved[i].pc == pc) return &reading.reserved[i].sizes;
    if (reading.reserved_count == kMostReserved) return &reading.reserved[0].sizes;
    reading.reserved[reading.reserved_count].pc = pc;
    return &reading.reserved[reading.reserved_count++].sizes;
}

// A piece of a mapping that is of another part than the rest.
struct Piece {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t pc = 0;
};

Piece reserved_piece(uintptr_t at, uintptr_t end) {
    const page_looks::Hold hold(kTries);
    const page_looks::Range* range = hold ? page_looks::ranges::first_behind(at) : nullptr;
    if (!range || range->begin >= end) return {};
    return {range->begin > at ? range->begin : at, range->end < end ? range->end : end,
            range->owner.page.pc};
}

Piece heap_piece(uintptr_t at, uintptr_t end) {
    for (uintptr_t base = (at + kHeapSpan - 1) & ~(kHeapSpan - 1); base < end; base += kHeapSpan)
        if (begins_heap(base)) return {base, base + kHeapSpan < end ? base + kHeapSpan : end, 0};
    return {};
}

// Neighbours are one mapping to the kernel: what of it is of another part is taken out. By the page
// where that is not all of it.
void take_pieces(Piece (*next)(uintptr_t at, uintptr_t end), Sizes* (*to)(uint64_t pc)) {
    Reading& reading = g.reading;
    const uintptr_t end = reading.mapping.end;
    for (Piece piece = next(reading.mapping.start, end); piece.begin < piece.end;
         piece = next(piece.end, end)) {
        const auto size = static_cast<int64_t>(piece.end - piece.begin);
        const bool whole = size == reading.sizes.size;
        const int64_t resident =
            whole ? reading.sizes.resident : resident_of(piece.begin, piece.end);
        Sizes taken = whole ? reading.sizes : reading.sizes.take(resident, reading.sizes.resident);
        taken.size = size;
        reading.sizes.size -= size;
        Sizes* sum = to(piece.pc);
        sum->add(taken);
        if (sum == of(MemoryPart::arenas)) note_heap(piece.begin, piece.end, MemoryPart::arenas);
        if (whole) reading.sizes = {};
        if (piece.end >= end) break;
    }
}

void close_mapping() {
    Reading& reading = g.reading;
    if (!reading.open) return;
    reading.open = false;
    const Mapping& mapping = reading.mapping;
    reading.sizes.size = static_cast<int64_t>(mapping.end - mapping.start);
    // A private mapping's pages are of a file or not: the kernel has no sum of both.
    reading.sizes.private_anonymous =
        reading.sizes.priv < reading.sizes.anonymous ? reading.sizes.priv : reading.sizes.anonymous;
    if (reading.part == MemoryPart::anonymous &&
        reading.sizes.resident + reading.sizes.swapped > 0) {
        take_pieces(heap_piece, [](uint64_t) { return of(MemoryPart::arenas); });
        take_pieces(reserved_piece, reserved_by);
    }
    if (reading.part == MemoryPart::heap) note_heap(mapping.start, mapping.end, reading.part);
    of(reading.part)->add(reading.sizes);
    reading.below_end = mapping.end;
    reading.below_is_guard = !mapping.readable && !mapping.writable &&
                             mapping.end - mapping.start <= 16 * pages::size() &&
                             mapping.path_length == 0;
}

// "Rss:       12 kB"
bool read_size(const char* line, const char* end, const char* name, int64_t* to) {
    const size_t length = strlen(name);
    if (static_cast<size_t>(end - line) <= length || memcmp(line, name, length) != 0) return false;
    const char* at = line + length;
    while (at < end && *at == ' ') ++at;
    read_decimal(at, to);
    *to *= 1024;
    return true;
}

bool read_line(const char* line, const char* end, void* /*context*/) {
    Reading& reading = g.reading;
    const bool is_name = line < end && *line >= 'A' && *line <= 'Z';
    if (!is_name) {
        close_mapping();
        reading.open = process_maps::parse(line, end, &reading.mapping);
        reading.sizes = {};
        if (reading.open) reading.part = part_of(reading.mapping);
        reading.mapping.path = "";  // it is in the text that the next read replaces
        return true;
    }
    int64_t size = 0;
    Sizes& sizes = reading.sizes;
    if (read_size(line, end, "Rss:", &sizes.resident) ||
        read_size(line, end, "Pss:", &sizes.proportional) ||
        read_size(line, end, "Anonymous:", &sizes.anonymous) ||
        read_size(line, end, "LazyFree:", &sizes.lazily_free) ||
        read_size(line, end, "Swap:", &sizes.swapped))
        return true;
    if (read_size(line, end, "Private_Clean:", &size) ||
        read_size(line, end, "Private_Dirty:", &size))
        sizes.priv += size;
    return true;
}

// ------------------------------------------------------------------ the interpreter's pools

constexpr uint32_t kClassOffset = 36;
constexpr uint32_t kClasses = 32;
constexpr int64_t kUnit = 16;
constexpr int64_t kSparse = 4;  // of which at most one in so many bytes is in use

void read_pool(uintptr_t pool, int64_t resident) {
    uint8_t head[40];
    if (resident == 0) return;
    if (!safe_read::copy(head, reinterpret_cast<const void*>(pool), sizeof head)) {
        g.reading.pools_known = false;
        return;
    }
    uint32_t used;
    uint32_t size_class;
    memcpy(&used, head, sizeof used);
    memcpy(&size_class, head + kClassOffset, sizeof size_class);
    if (size_class >= kClasses) return;
    const int64_t live = int64_t{used} * (size_class + 1) * kUnit;
    if (live > static_cast<int64_t>(known_pools::kPool)) return;  // it is not one any more
    g.reading.pools_live += live;
    if (live == 0 || live * kSparse > static_cast<int64_t>(known_pools::kPool)) return;
    g.reading.sparse += resident;
    g.reading.sparse_live += live;
}

void read_pools(uintptr_t begin, uintptr_t end, void* /*context*/) {
    constexpr uintptr_t kTogether = 256;
    constexpr uintptr_t kPieces = known_pools::kPool / pages::kPiece;
    uint8_t pieces[kTogether * kPieces];
    g.reading.pools_size += static_cast<int64_t>(end - begin);
    for (uintptr_t at = begin; at < end;) {
        const uintptr_t left = (end - at) / known_pools::kPool;
        const uintptr_t some = left < kTogether ? left : kTogether;
        if (pages::ask(at, at + some * known_pools::kPool, pieces) != 0)
            memset(pieces, 0, sizeof pieces);
        for (uintptr_t pool = 0; pool < some; ++pool) {
            int64_t resident = 0;
            for (uintptr_t piece = 0; piece < kPieces; ++piece)
                resident += (pieces[pool * kPieces + piece] & 1) != 0 ? pages::kPiece : 0;
            g.reading.pools_resident += resident;
            read_pool(at + pool * known_pools::kPool,
                      (pieces[pool * kPieces] & 1) != 0 ? resident : 0);
        }
        at += some * known_pools::kPool;
    }
}

// ------------------------------------------------------------------ malloc's chunks

// For at most `allowed_ns` of the thread's CPU time, which is not part of what a reading takes.
void read_chunks(int64_t now_ns, int64_t allowed_ns) {
    Reading& reading = g.reading;
    const bool rests = now_ns - g.chunks_ns < kCost * g.chunks_took_ns;
    for (HeapChunks& each : reading.chunks)
        each.known &= g.mappings >= 0 && allowed_ns > 0 && !safe_read::kernel_chosen();
    if (rests) reading.chunks[0].known = reading.chunks[1].known = false;
    const int64_t began = kernel::own_cpu_ns();
    malloc_chunks::Limit limit{kMostChunks, began + allowed_ns};
    for (size_t i = 0; i < reading.heaps_count; ++i) {
        MallocHeap heap = reading.heaps[i];
        HeapChunks& chunks = chunks_of(heap.part);
        if (!chunks.known) continue;
        uintptr_t first = heap.begin;
        if (heap.part == MemoryPart::arenas &&
            !malloc_chunks::find_in_further_heap(heap.begin, &first, &heap.end))
            chunks.known = false;
        else
            chunks.known = malloc_chunks::walk(first, heap.end, &limit, &chunks.sparse);
    }
    if (rests) return;
    g.chunks_ns = now_ns;
    g.chunks_took_ns = kernel::own_cpu_ns() - began;
}

// ------------------------------------------------------------------ rows

MemoryPartRecord* new_row(spool::Ticket* ticket, MemoryPart part, int64_t time_ns,
                          const Sizes& sizes) {
    *ticket = spool::reserve(Kind::memory_part, sizeof(MemoryPartRecord));
    if (!ticket->record) return nullptr;
    auto* record = reinterpret_cast<MemoryPartRecord*>(ticket->record);
    record->time_ns = time_ns;
    record->part = static_cast<uint8_t>(part);
    record->size_bytes = sizes.size;
    record->resident_bytes = sizes.resident;
    record->anonymous_bytes = sizes.anonymous;
    record->private_bytes = sizes.priv;
    record->private_anonymous_bytes = sizes.private_anonymous;
    record->proportional_bytes = sizes.proportional;
    record->swapped_bytes = sizes.swapped;
    record->lazily_free_bytes = sizes.lazily_free;
    record->live_bytes = record->sparse_bytes = record->sparse_live_bytes = kUnknown;
    record->pc = 0;
    return record;
}

bool write_library(int64_t time_ns, const library_allocators::Use& use) {
    Sizes sizes;
    sizes.size = use.in_use + use.dirty + use.muzzy;
    sizes.resident = use.in_use + use.dirty;
    sizes.anonymous = sizes.priv = sizes.private_anonymous = sizes.proportional = kUnknown;
    sizes.swapped = kUnknown;
    sizes.lazily_free = use.muzzy;
    spool::Ticket ticket{};
    MemoryPartRecord* record = new_row(&ticket, MemoryPart::allocators, time_ns, sizes);
    if (!record) return false;
    record->live_bytes = use.live;
    record->pc = use.function;
    modules::saw(use.function);
    spool::commit(ticket);
    return true;
}

void write_rows(int64_t time_ns) {
    const Reading& reading = g.reading;
    spool::Ticket ticket{};
    for (size_t i = 0; i < kParts; ++i) {
        const auto part = static_cast<MemoryPart>(i);
        const Sizes& sizes = reading.parts[i];
        if (sizes.resident + sizes.swapped == 0) continue;
        MemoryPartRecord* record = new_row(&ticket, part, time_ns, sizes);
        if (!record) return;
        if (part == MemoryPart::anonymous) record->live_bytes = g.mappings;
        if ((part == MemoryPart::heap || part == MemoryPart::arenas) && chunks_of(part).known) {
            record->sparse_bytes = chunks_of(part).sparse.pages;
            record->sparse_live_bytes = chunks_of(part).sparse.live;
        }
        spool::commit(ticket);
    }
    for (size_t i = 0; i < reading.reserved_count; ++i) {
        const Reserved& reserved = reading.reserved[i];
        if (reserved.sizes.resident + reserved.sizes.swapped == 0) continue;
        MemoryPartRecord* record = new_row(&ticket, MemoryPart::reserved, time_ns, reserved.sizes);
        if (!record) return;
        record->pc = reserved.pc;
        if (reserved.pc != 0) modules::saw(reserved.pc);
        spool::commit(ticket);
    }
    for (size_t i = 0; i < reading.libraries_count; ++i)
        if (!write_library(time_ns, reading.libraries[i])) return;
    if (reading.pools_resident == 0) return;
    Sizes pools;
    pools.size = reading.pools_size;
    pools.resident = reading.pools_resident;
    pools.anonymous = pools.priv = pools.private_anonymous = pools.proportional = kUnknown;
    pools.swapped = pools.lazily_free = kUnknown;
    MemoryPartRecord* record = new_row(&ticket, MemoryPart::pools, time_ns, pools);
    if (!record) return;
    if (reading.pools_known) {
        record->live_bytes = reading.pools_live;
        record->sparse_bytes = reading.sparse;
        record->sparse_live_bytes = reading.sparse_live;
    }
    spool::commit(ticket);
}

int64_t expected_ns(int64_t resident) {
    const int64_t guess = resident / static_cast<int64_t>(pages::kPiece) * kPageNs;
    return guess > g.took_ns ? guess : g.took_ns;
}

// `guarded`: a fault of this thread would reach our handler. Chunks take `chunks_ns` at most.
// `may_call`: the thread may call functions of libraries.
bool read_all(int64_t now_ns, int64_t resident, bool guarded, int64_t chunks_ns, bool may_call) {
    const bool kernel_before = safe_read::kernel_chosen();
    safe_read::use_kernel(!guarded);
    const int64_t used = kernel::own_cpu_ns();
    g.reading = {};
    const bool whole =
        process_maps::each_line("/proc/self/smaps", g_text, sizeof g_text, read_line, nullptr);
    close_mapping();
    if (whole) {
        known_pools::each_run(read_pools, nullptr);
        if (may_call) g.reading.libraries_count = library_allocators::ask(g.reading.libraries);
        g.took_ns = kernel::own_cpu_ns() - used;
        read_chunks(now_ns, chunks_ns);
        write_rows(kernel::monotonic_ns());
    } else {
        g.took_ns = kernel::own_cpu_ns() - used;
    }
    g.read_ns = now_ns;
    g.resident = resident;
    safe_read::use_kernel(kernel_before);
    return whole;
}

}  // namespace

void begin(int64_t now_ns) { g.began_ns = g.read_ns = now_ns; }

bool tick(int64_t now_ns, int64_t mappings) {
    if (library_allocators::search()) g.resident = 0;  // the next reading says more than the last
    const int64_t since = now_ns - g.read_ns;
    if (sandbox::entered() || now_ns - g.looked_ns < kLookNs) return false;
    g.looked_ns = now_ns;
    if (since < kLeastNs || since < kCost * g.took_ns) return false;
    const int64_t resident = footprint::resident_bytes();
    if (resident < 0 || since < kCost * expected_ns(resident)) return false;
    const int64_t moved = resident > g.resident ? resident - g.resident : g.resident - resident;
    if (moved < kNoticeable && since < kSilenceNs) return false;
    const BoundedLock lock(g.busy, 1);
    if (!lock) return false;
    g.mappings = mappings < 0 ? kUnknown : mappings;
    const bool whole = read_all(now_ns, resident, fault::verify(), kLongestChunksNs, true);
    for (size_t i = 0; whole && i < g.reading.reserved_count; ++i)
        if (g.reading.reserved[i].sizes.resident >= kWorthAsking)
            library_allocators::reserved_by(g.reading.reserved[i].pc);
    return whole;
}

bool settle(int64_t mappings, bool may_call) {
    const int64_t now = kernel::monotonic_ns();
    const int64_t lived = now - g.began_ns;
    if (sandbox::entered() || lived < kYoungNs) return false;
    const int64_t part_of_end = lived / kEndCost;
    const int64_t most = part_of_end < kLongestEndNs ? part_of_end : kLongestEndNs;
    // The recorder's own thread may be in the middle of a reading: of what was, not of the end.
    const BoundedLock lock(g.busy, Until{now + most});
    if (!lock) return false;
    const int64_t resident = footprint::resident_bytes();
    if (resident < 0 || expected_ns(resident) > most) return false;
    g.mappings = mappings < 0 ? kUnknown : mappings;
    const int64_t part = lived / kCost;
    const int64_t chunks_ns = part < kLongestChunksNs ? part : kLongestChunksNs;
    g.chunks_took_ns = 0;  // what is known last is worth its time
    return read_all(now, resident, stack_capture::fault_gets_through(), chunks_ns, may_call);
}

void sampled(const tg_walk& found, int64_t time_ns) {
    if (!g.forked.load(std::memory_order_relaxed)) return;
    heap::Counters* counters = heap::t_local.counters;
    rusage usage{};
    if (!counters || kernel::call(SYS_getrusage, RUSAGE_THREAD, kernel::address(&usage)) != 0)
        return;
    const int64_t faults = usage.ru_minflt - counters->forked_faults;
    if (faults <= 0) return;
    const spool::Ticket ticket = spool::reserve(Kind::page_faults, sizeof(PageFaultsRecord));
    if (!ticket.record) return;
    auto* record = reinterpret_cast<PageFaultsRecord*>(ticket.record);
    record->time_ns = time_ns;
    record->faults = faults;
    record->thread = counters->thread;
    record->stack = found.stack;
    record->stack_state = found.state;
    spool::commit(ticket);
    counters->forked_faults = usage.ru_minflt;
}

void after_fork_in_child() {
    library_allocators::after_fork_in_child();
    g.busy.clear();
    g.forked.store(true);
    g.took_ns = g.resident = g.chunks_took_ns = 0;
}

}  // namespace tachograph::memory_parts

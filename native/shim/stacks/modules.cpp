#include "stacks/modules.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "base/process_maps.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/own_memory.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "unwind/images.h"

#include <elf.h>
#include <atomic>
#include <cstring>

namespace tachograph::modules {
namespace {

using process_maps::Mapping;

constexpr uint32_t kMostModules = 16 * 1024;
constexpr size_t kBuffer = 64 * 1024;
constexpr size_t kMostBuildId = 64;
constexpr size_t kMostPath = 4000;
// Reading the list holds up every thread that maps memory: it takes a twentieth of the time at
// most, but for a survey.
constexpr int64_t kRest = 20;
constexpr size_t kNames = 512 * 1024;  // bytes; they are touched as they are filled

// Handlers may look at a table while it is made anew: then they take a known program counter for
// an unknown one, or the other way round.
struct Module {
    std::atomic<uint64_t> start;
    std::atomic<uint64_t> end;
    uint64_t file_offset;
    uint64_t path_hash;
    uint32_t id;
    uint32_t name;  // its place among the names + 1; 0: it is not there
};

// What else its record says, for children that are forked later: they need not read the list.
struct Name {
    uint16_t build_id_length;
    uint16_t path_length;
};

// The executable mappings that there are at one moment, by address.
struct Table {
    Module modules[kMostModules] = {};
    std::atomic<uint32_t> count{0};
};

struct State {
    Table tables[2];
    std::atomic<uint32_t> published{0};
    std::atomic<bool> changed{true};
    std::atomic<bool> unknown{false};
    std::atomic<bool> reading{false};  // and not done with what had changed
    // In a forked child: its parent's mappings are those of the published table, their records are
    // not written yet, and whether a sample has met one of them.
    std::atomic<bool> inherited{false};
    std::atomic<bool> met{false};
    // Helper only.
    uint32_t next_id = 0;
    bool fruitful = true;  // the last look has found something new
    int64_t not_before_ns = 0;
    uint32_t told_too_many = 0;
    uint8_t* names = nullptr;
    size_t names_used = 0;
    char buffer[kBuffer] = {};
};
constinit TG_LARGE_DATA State g;

// A table in the making.
struct Making {
    const Table& before;
    Table& now;
    bool images;
    uint32_t at = 0;  // in the one before
    uint32_t count = 0;
    uint32_t too_many = 0;
    bool fruitful = false;
    bool whole = true;
};

// GNU build id of the ELF image whose file offset 0 is mapped at `base`; 0 bytes if there is none.
size_t build_id(uint64_t base, uint8_t* to) {
    Elf64_Ehdr header;
    if (!safe_read::copy(&header, reinterpret_cast<void*>(base), sizeof header)) return 0;
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    for (int i = 0; i < header.e_phnum && i < 64; ++i) {
        Elf64_Phdr program;
        const uint64_t at = base + header.e_phoff + static_cast<uint64_t>(i) * sizeof program;
        if (!safe_read::copy(&program, reinterpret_cast<void*>(at), sizeof program)) return 0;
        if (program.p_type != PT_NOTE) continue;
        // Notes lie in the first segment, where address and file offset run alike.
        uint8_t notes[512];
        const size_t size = program.p_filesz < sizeof notes ? program.p_filesz : sizeof notes;
        if (!safe_read::copy(notes, reinterpret_cast<void*>(base + program.p_offset), size))
            continue;
        for (size_t offset = 0; offset + sizeof(Elf64_Nhdr) <= size;) {
            Elf64_Nhdr note;
            memcpy(&note, notes + offset, sizeof note);
            const size_t name = offset + sizeof note;
            const size_t content = name + ((note.n_namesz + 3) & ~3u);
            if (note.n_descsz > kMostBuildId || content + note.n_descsz > size) break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                memcmp(notes + name, "GNU", 4) == 0) {
                memcpy(to, notes + content, note.n_descsz);
                return note.n_descsz;
            }
            offset = content + ((note.n_descsz + 3) & ~3u);
        }
    }
    return 0;
}

// The same mapping in the table before; null if it was not there. In order of addresses.
const Module* known(Making& making, const Mapping& mapping) {
    const auto start_of = [&](uint32_t at) {
        return making.before.modules[at].start.load(std::memory_order_relaxed);
    };
    const uint32_t count = making.before.count.load(std::memory_order_relaxed);
    while (making.at < count && start_of(making.at) < mapping.start) ++making.at;
    if (making.at == count) return nullptr;
    const Module& module = making.before.modules[making.at];
    const bool same = start_of(making.at) == mapping.start &&
                      module.end.load(std::memory_order_relaxed) == mapping.end &&
                      module.file_offset == mapping.file_offset &&
                      module.path_hash == mapping.path_hash;
    return same ? &module : nullptr;
}

// 0: there is no room for it.
uint32_t keep_name(const uint8_t* bytes, size_t build_id_length, size_t path_length) {
    const size_t at = (g.names_used + alignof(Name) - 1) / alignof(Name) * alignof(Name);
    const size_t end = at + sizeof(Name) + build_id_length + path_length;
    if (!g.names || end > kNames) return 0;
    auto* name = reinterpret_cast<Name*>(g.names + at);
    name->build_id_length = static_cast<uint16_t>(build_id_length);
    name->path_length = static_cast<uint16_t>(path_length);
    memcpy(name + 1, bytes, build_id_length + path_length);
    g.names_used = end;
    return static_cast<uint32_t>(at) + 1;
}

// `bytes`: the build id, then the path.
bool write(uint32_t id, uint64_t start, uint64_t end, uint64_t file_offset, size_t identity_length,
           size_t path_length, const uint8_t* bytes) {
    const size_t length = identity_length + path_length;
    const spool::Ticket ticket = spool::reserve(Kind::module, sizeof(ModuleRecord) + length);
    if (!ticket.record) return false;
    const auto evaluation = reinterpret_cast<uint64_t>(recorder().walker.evaluation_loop);
    auto* record = reinterpret_cast<ModuleRecord*>(ticket.record);
    record->module = id;
    record->flags = evaluation >= start && evaluation < end ? 1 : 0;
    record->start = start;
    record->end = end;
    record->file_offset = file_offset;
    record->time_ns = kernel::monotonic_ns();
    record->build_id_length = static_cast<uint16_t>(identity_length);
    record->path_length = static_cast<uint16_t>(path_length);
    memcpy(record + 1, bytes, length);
    spool::commit(ticket);
    return true;
}

bool write_new(uint32_t id, const Mapping& mapping, uint32_t* name) {
    uint8_t bytes[kMostBuildId + kMostPath];
    const uint64_t image = mapping.path[0] == '/' ? mapping.image : 0;
    const size_t identity_length = image ? build_id(image, bytes) : 0;
    const size_t path_length = mapping.path_length > kMostPath ? kMostPath : mapping.path_length;
    memcpy(bytes + identity_length, mapping.path, path_length);
    if (!write(id, mapping.start, mapping.end, mapping.file_offset, identity_length, path_length,
               bytes))
        return false;
    *name = keep_name(bytes, identity_length, path_length);
    return true;
}

bool write_inherited(const Module& module) {
    const auto* name = reinterpret_cast<const Name*>(g.names + module.name - 1);
    return write(module.id, module.start.load(std::memory_order_relaxed),
                 module.end.load(std::memory_order_relaxed), module.file_offset,
                 name->build_id_length, name->path_length,
                 reinterpret_cast<const uint8_t*>(name + 1));
}

// What is not written now is read anew, with other ids, at a later look.
void write_all_inherited() {
    if (!g.inherited.exchange(false)) return;
    Table& table = g.tables[g.published.load(std::memory_order_relaxed)];
    const uint32_t count = table.count.load(std::memory_order_relaxed);
    for (uint32_t at = 0; at < count; ++at) {
        if (write_inherited(table.modules[at])) continue;
        table.count.store(0);
        g.changed.store(true);
        return;
    }
}

void visit(const Mapping& mapping, void* context) {
    auto& making = *static_cast<Making*>(context);
    if (!mapping.executable) return;
    if (making.images) unwind::images::add(mapping);
    const Module* before = known(making, mapping);
    uint32_t id = before ? before->id : g.next_id;
    uint32_t name = before ? before->name : 0;
    if (making.count == kMostModules) {
        ++making.too_many;
        return;
    }
    if (!before) {
        Mapping named = mapping;
        if (named.path_length == 0) {
            named.path = "[anonymous]";
            named.path_length = 11;
        }
        making.fruitful = true;
        if (!write_new(id, named, &name)) {
            making.whole = false;  // without its record it stays unknown, and is met again
            return;
        }
        ++g.next_id;
    }
    Module& module = making.now.modules[making.count++];
    module.start.store(mapping.start, std::memory_order_relaxed);
    module.end.store(mapping.end, std::memory_order_relaxed);
    module.file_offset = mapping.file_offset;
    module.path_hash = mapping.path_hash;
    module.id = id;
    module.name = name;
}

// Whether the published table is all that a child needs to know of its parent's mappings.
bool is_whole() {
    if (g.changed.load(std::memory_order_relaxed) || g.reading.load() || g.told_too_many > 0)
        return false;
    const Table& table = g.tables[g.published.load(std::memory_order_relaxed)];
    const uint32_t count = table.count.load(std::memory_order_relaxed);
    for (uint32_t at = 0; at < count; ++at)
        if (table.modules[at].name == 0) return false;
    return count > 0;
}

}  // namespace

void saw(uint64_t pc) {
    const Table& table = g.tables[g.published.load(std::memory_order_acquire)];
    uint32_t low = 0;
    uint32_t high = table.count.load(std::memory_order_acquire);
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (table.modules[middle].end.load(std::memory_order_relaxed) <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    const bool known = low < table.count.load(std::memory_order_relaxed) &&
                       table.modules[low].start.load(std::memory_order_relaxed) <= pc;
    if (!known)
        g.unknown.store(true, std::memory_order_relaxed);
    else if (g.inherited.load(std::memory_order_relaxed) && !g.met.load(std::memory_order_relaxed))
        g.met.store(true, std::memory_order_relaxed);
}

void missed() { g.unknown.store(true, std::memory_order_relaxed); }

void changed() { g.changed.store(true, std::memory_order_relaxed); }

void open() {
    if (!g.names && !own_memory::map(&g.names, kNames)) g.names = nullptr;
}

void forget() {
    g.reading.store(false);
    g.inherited.store(false);
    g.met.store(false);
    g.names_used = 0;
    for (Table& table : g.tables) table.count.store(0);
    g.changed.store(true);
    g.unknown.store(false);
    g.next_id = 0;
    g.told_too_many = 0;
    g.not_before_ns = 0;
}

void inherit() {
    if (!is_whole()) return forget();
    g.inherited.store(true);
    g.met.store(false);
    g.unknown.store(false);
    g.not_before_ns = 0;
}

void refresh_at_end() {
    if (g.unknown.load(std::memory_order_relaxed))
        refresh(true);
    else if (g.met.load(std::memory_order_relaxed))
        write_all_inherited();
}

void refresh(bool survey) {
    const int64_t begun_ns = kernel::monotonic_ns();
    if (!survey && begun_ns < g.not_before_ns) return;
    write_all_inherited();
    if (!g.changed.exchange(false) &&
        (!g.unknown.load(std::memory_order_relaxed) || !(g.fruitful || survey)))
        return;
    g.unknown.store(false, std::memory_order_relaxed);
    g.reading.store(true);
    const uint32_t published = g.published.load(std::memory_order_relaxed);
    Making making{g.tables[published], g.tables[1 - published], unwind::images::begin()};
    // Not while they are read by others, or a library is being closed: then at the next look.
    if (!making.images && unwind::images::are_kept()) g.changed.store(true);
    making.now.count.store(0, std::memory_order_relaxed);
    const bool read = process_maps::each(g.buffer, kBuffer, visit, &making);
    if (making.images && read) unwind::images::publish();
    const int64_t ended_ns = kernel::monotonic_ns();
    g.not_before_ns = ended_ns + kRest * (ended_ns - begun_ns);
    g.fruitful = making.fruitful || making.count != making.before.count.load();
    if (!read || !making.whole) g.changed.store(true);
    g.reading.store(false);
    if (!read) return;
    making.now.count.store(making.count, std::memory_order_release);
    g.published.store(1 - published, std::memory_order_release);
    if (making.too_many > g.told_too_many) {
        spool::count(Loss::modules_lost, making.too_many - g.told_too_many);
        g.told_too_many = making.too_many;
    }
}

}  // namespace tachograph::modules

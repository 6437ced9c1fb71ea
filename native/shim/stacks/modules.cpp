#include "stacks/modules.h"

#include "base/kernel.h"
#include "base/process_maps.h"
#include "base/safe_read.h"
#include "spool/layout.h"
#include "spool/spool.h"
#include "stacks/recorder.h"
#include "unwind/images.h"

#include <elf.h>
#include <atomic>
#include <cstring>

namespace tachograph::modules {
namespace {

using process_maps::Mapping;

constexpr uint32_t kMostModules = 4096;
constexpr size_t kBuffer = 64 * 1024;
constexpr size_t kMostBuildId = 64;

struct Module {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    uint64_t path_hash;
};

struct State {
    Module modules[kMostModules] = {};  // by id; insert-only
    std::atomic<uint32_t> count{0};
    std::atomic<bool> stale{false};
    char buffer[kBuffer] = {};
};
constinit State g;

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

bool known(const Module& wanted, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const Module& module = g.modules[i];
        if (module.start == wanted.start && module.end == wanted.end &&
            module.file_offset == wanted.file_offset && module.path_hash == wanted.path_hash)
            return true;
    }
    return false;
}

bool write(uint32_t id, const Mapping& mapping, uint64_t image) {
    uint8_t identity[kMostBuildId];
    const size_t identity_length = image ? build_id(image, identity) : 0;
    const size_t path_length = mapping.path_length > 4000 ? 4000 : mapping.path_length;
    const spool::Ticket ticket =
        spool::reserve(Kind::module, sizeof(ModuleRecord) + identity_length + path_length);
    if (!ticket.record) return false;
    const auto evaluation = reinterpret_cast<uint64_t>(recorder().walker.evaluation_loop);
    auto* record = reinterpret_cast<ModuleRecord*>(ticket.record);
    record->module = id;
    record->flags = evaluation >= mapping.start && evaluation < mapping.end ? 1 : 0;
    record->start = mapping.start;
    record->end = mapping.end;
    record->file_offset = mapping.file_offset;
    record->time_ns = kernel::monotonic_ns();
    record->build_id_length = static_cast<uint16_t>(identity_length);
    record->path_length = static_cast<uint16_t>(path_length);
    memcpy(record + 1, identity, identity_length);
    memcpy(reinterpret_cast<uint8_t*>(record + 1) + identity_length, mapping.path, path_length);
    spool::commit(ticket);
    return true;
}

void visit(const Mapping& mapping, void* rows) {
    if (!mapping.executable) return;
    if (rows) unwind::images::add(mapping);
    const Module module{mapping.start, mapping.end, mapping.file_offset, mapping.path_hash};
    const uint32_t count = g.count.load(std::memory_order_relaxed);
    if (count >= kMostModules || known(module, count)) return;
    Mapping named = mapping;
    if (named.path_length == 0) {
        named.path = "[anonymous]";
        named.path_length = 11;
    }
    g.modules[count] = module;
    // Without its record it stays unknown, and is met again.
    if (write(count, named, named.path[0] == '/' ? named.image : 0))
        g.count.store(count + 1, std::memory_order_release);
}

}  // namespace

void saw(uint64_t pc) {
    const uint32_t count = g.count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i)
        if (pc >= g.modules[i].start && pc < g.modules[i].end) return;
    g.stale.store(true, std::memory_order_relaxed);
}

void missed() { g.stale.store(true, std::memory_order_relaxed); }

void forget() { g.count.store(0); }

void refresh(bool force) {
    if (!g.stale.exchange(false) && !force) return;
    // Not while they are read by others, or a library is being closed: then at the next look.
    bool rows = unwind::images::begin();
    if (!rows && unwind::images::are_kept()) g.stale.store(true);
    const bool read = process_maps::each(g.buffer, kBuffer, visit, rows ? &rows : nullptr);
    if (rows && read) unwind::images::publish();
}

}  // namespace tachograph::modules

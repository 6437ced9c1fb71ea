#include "memory/library_allocators.h"

#include "base/kernel.h"
#include "base/large_data.h"
#include "base/process_maps.h"
#include "base/safe_read.h"
#include "base/sandbox.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace tachograph::library_allocators {

std::atomic_flag g_busy = ATOMIC_FLAG_INIT;
std::atomic<int> g_unloading{0};

namespace {

using Mallctl = int (*)(const char* name, void* old, size_t* old_size, void* given, size_t size);

constexpr size_t kPcs = 24;
constexpr size_t kLongestPath = 1024;
constexpr size_t kCode = 64;  // of the function, which are compared
constexpr size_t kNames = 8;
constexpr size_t kLongestName = 64;
constexpr size_t kMostHeaders = 64;
constexpr size_t kMostSections = 256;
constexpr char kFunction[] = "mallctl";  // with its final zero
constexpr uint64_t kReadByTick = 512 * 1024;

// A library that is searched: its file is read in small parts.
enum class Step : uint8_t { nothing, open, names, symbols };

struct Name {
    uint64_t begin = 0;
    uint64_t end = 0;  // where `kFunction` begins in it
};

struct Search {
    Step step = Step::nothing;
    uint64_t pc = 0;
    char path[kLongestPath] = {};
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t bias = 0;
    Elf64_Phdr headers[kMostHeaders] = {};
    size_t header_count = 0;
    Elf64_Shdr symbols = {};
    Elf64_Shdr strings = {};
    uint64_t at = 0;
    Name names[kNames] = {};
    size_t name_count = 0;
    uint64_t value = 0;  // of the symbol
    bool several = false;
};

struct Library {
    uint64_t function = 0;
    uint8_t code[kCode] = {};
    int64_t page = 0;
};

struct State {
    uint64_t pcs[kPcs] = {};  // that were searched, or are
    size_t pc_count = 0;
    uint64_t paths[kPcs] = {};  // hashes of the libraries' paths
    size_t path_count = 0;
    Library libraries[kMost];
    std::atomic<size_t> count{0};
    Search search;
};
constinit TG_LARGE_ZEROS State g{};
constinit TG_LARGE_ZEROS char g_text[16 * 1024] = {};

// ------------------------------------------------------------------ jemalloc's answers

// To be asked with the lock: a thread that unloads one counts itself before it looks at the lock.
// Both write to the count: the second of them sees what the first did before.
bool none_is_unloaded() { return g_unloading.fetch_add(0) <= 0; }

bool is_still_there(const Library& library) {
    uint8_t code[kCode];
    return safe_read::copy(code, reinterpret_cast<const void*>(library.function), kCode) &&
           memcmp(code, library.code, kCode) == 0;
}

template <typename T>
bool read(Mallctl function, const char* name, T* to) {
    size_t size = sizeof *to;
    return function(name, to, &size, nullptr, 0) == 0 && size == sizeof *to;
}

// All arenas together have this number (MALLCTL_ARENAS_ALL).
bool read_use(const Library& library, Use* to) {
    const auto function = reinterpret_cast<Mallctl>(library.function);
    uint64_t epoch = 1;
    size_t size = sizeof epoch;
    // The statistics are those of the moment at which the epoch is set.
    if (function("epoch", &epoch, &size, &epoch, sizeof epoch) != 0) return false;
    size_t in_use = 0;
    size_t dirty = 0;
    size_t muzzy = 0;
    size_t live = 0;
    if (!read(function, "stats.arenas.4096.pactive", &in_use) ||
        !read(function, "stats.arenas.4096.pdirty", &dirty))
        return false;
    if (!read(function, "stats.arenas.4096.pmuzzy", &muzzy)) muzzy = 0;
    to->function = library.function;
    to->in_use = static_cast<int64_t>(in_use) * library.page;
    to->dirty = static_cast<int64_t>(dirty) * library.page;
    to->muzzy = static_cast<int64_t>(muzzy) * library.page;
    to->live = read(function, "stats.allocated", &live) ? static_cast<int64_t>(live) : to->in_use;
    return true;
}

bool answers(Library* library) {
    const auto function = reinterpret_cast<Mallctl>(library->function);
    const char* version = nullptr;
    size_t page = 0;
    Use use;
    if (!read(function, "version", &version) || !version || version[0] < '5' || version[0] > '9' ||
        !read(function, "arenas.page", &page) || page < 4096 || (page & (page - 1)) != 0)
        return false;
    library->page = static_cast<int64_t>(page);
    return read_use(*library, &use);
}

// ------------------------------------------------------------------ a library's file

long read_at(long fd, void* to, size_t size, uint64_t offset) {
    return kernel::call(SYS_pread64, fd, kernel::address(to), static_cast<long>(size),
                        static_cast<long>(offset));
}

bool read_whole(long fd, void* to, size_t size, uint64_t offset) {
    return read_at(fd, to, size, offset) == static_cast<long>(size);
}

void find_path(const process_maps::Mapping& mapping, void* context) {
    const uint64_t pc = g.search.pc;
    if (pc < mapping.start || pc >= mapping.end || !mapping.executable ||
        mapping.path_length == 0 || mapping.path[0] != '/' || mapping.path_length >= kLongestPath)
        return;
    memcpy(g.search.path, mapping.path, mapping.path_length);
    g.search.path[mapping.path_length] = 0;
    g.search.at = mapping.file_offset + (pc - mapping.start);
    *static_cast<uint64_t*>(context) = mapping.path_hash;
}

// The library of `pc`, unless it was searched before.
bool is_new() {
    uint64_t hash = 0;
    if (!process_maps::each(g_text, sizeof g_text, find_path, &hash) || hash == 0) return false;
    for (size_t i = 0; i < g.path_count; ++i)
        if (g.paths[i] == hash) return false;
    g.paths[g.path_count++] = hash;
    return true;
}

long open_file() {
    Search& search = g.search;
    const long fd =
        kernel::call(SYS_openat, AT_FDCWD, kernel::address(search.path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fd;
    struct stat status{};
    const bool known = kernel::call(SYS_fstat, fd, kernel::address(&status)) == 0 &&
                       S_ISREG(status.st_mode) &&
                       (search.step == Step::open ||
                        (status.st_dev == search.device && status.st_ino == search.inode));
    search.device = status.st_dev;
    search.inode = status.st_ino;
    if (known) return fd;
    kernel::call(SYS_close, fd);
    return -1;
}

// Where in memory the library lies, and its table of symbols: the whole one, or the exported.
bool read_headers(long fd) {
    Search& search = g.search;
    Elf64_Ehdr head;
    if (!read_whole(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
        head.e_shentsize != sizeof(Elf64_Shdr) || head.e_phnum > kMostHeaders ||
        head.e_shnum > kMostSections || head.e_shoff == 0)
        return false;
    search.header_count = head.e_phnum;
    if (!read_whole(fd, search.headers, head.e_phnum * sizeof(Elf64_Phdr), head.e_phoff))
        return false;
    bool placed = false;
    for (size_t i = 0; i < search.header_count; ++i) {
        const Elf64_Phdr& each = search.headers[i];
        if (each.p_type != PT_LOAD || search.at - each.p_offset >= each.p_filesz) continue;
        search.bias = search.pc - (each.p_vaddr + (search.at - each.p_offset));
        placed = true;
    }
    auto* sections = reinterpret_cast<Elf64_Shdr*>(g_text);
    static_assert(sizeof g_text >= kMostSections * sizeof(Elf64_Shdr));
    if (!placed || !read_whole(fd, sections, head.e_shnum * sizeof(Elf64_Shdr), head.e_shoff))
        return false;
    for (const uint32_t type : {SHT_SYMTAB, SHT_DYNSYM})
        for (size_t i = 0; i < head.e_shnum; ++i) {
            if (sections[i].sh_type != type || sections[i].sh_link >= head.e_shnum) continue;
            search.symbols = sections[i];
            search.strings = sections[sections[i].sh_link];
            return search.symbols.sh_entsize == sizeof(Elf64_Sym);
        }
    return false;
}

// A part of the names. Parts overlap by the longest name.
bool read_names(long fd) {
    Search& search = g.search;
    const uint64_t left = search.strings.sh_size - search.at;
    const size_t size = left < sizeof g_text ? left : sizeof g_text;
    if (!read_whole(fd, g_text, size, search.strings.sh_offset + search.at)) return false;
    const bool last = size == left;
    const size_t fresh = last ? size : size - kLongestName;  // names that begin there are whole
    const char* end = g_text + size;
    for (const char* from = g_text;
         const auto* hit = static_cast<const char*>(
             memmem(from, static_cast<size_t>(end - from), kFunction, sizeof kFunction));
         from = hit + 1) {
        const char* begin = hit;
        while (begin > g_text && begin[-1] != 0) --begin;
        if (static_cast<size_t>(begin - g_text) > fresh) break;
        // The part before had it whole, or it is too long.
        if (begin == g_text && search.at != 0) continue;
        if (search.name_count == kNames) return false;
        search.names[search.name_count++] = {search.at + static_cast<uint64_t>(begin - g_text),
                                             search.at + static_cast<uint64_t>(hit - g_text)};
    }
    search.at += fresh;
    if (!last) return true;
    search.step = Step::symbols;
    search.at = 0;
    return search.name_count > 0;
}

bool has_name(const Elf64_Sym& symbol) {
    for (size_t i = 0; i < g.search.name_count; ++i)
        if (symbol.st_name >= g.search.names[i].begin && symbol.st_name <= g.search.names[i].end)
            return true;
    return false;
}

// Of the code in memory what the file has at the symbol's place.
bool is_in_memory(long fd, Library* library) {
    const Search& search = g.search;
    for (size_t i = 0; i < search.header_count; ++i) {
        const Elf64_Phdr& each = search.headers[i];
        if (each.p_type != PT_LOAD || (each.p_flags & PF_X) == 0 ||
            search.value - each.p_vaddr >= each.p_filesz)
            continue;
        library->function = search.bias + search.value;
        return read_whole(fd, library->code, kCode,
                          each.p_offset + (search.value - each.p_vaddr)) &&
               is_still_there(*library);
    }
    return false;
}

void found(long fd) {
    Library& library = g.libraries[g.count.load(std::memory_order_relaxed)];
    if (g.search.value == 0 || g.search.several || !is_in_memory(fd, &library)) return;
    for (size_t i = 0; i < g.count.load(std::memory_order_relaxed); ++i)
        if (g.libraries[i].function == library.function) return;
    const BoundedLock lock(g_busy, 1);
    if (lock && none_is_unloaded() && is_still_there(library) && answers(&library))
        g.count.fetch_add(1, std::memory_order_release);
}

bool read_symbols(long fd) {
    Search& search = g.search;
    constexpr size_t kTogether = sizeof g_text / sizeof(Elf64_Sym);
    const uint64_t left = search.symbols.sh_size / sizeof(Elf64_Sym) - search.at;
    const size_t count = left < kTogether ? left : kTogether;
    if (!read_whole(fd, g_text, count * sizeof(Elf64_Sym),
                    search.symbols.sh_offset + search.at * sizeof(Elf64_Sym)))
        return false;
    for (size_t i = 0; i < count; ++i) {
        Elf64_Sym symbol;
        memcpy(&symbol, g_text + i * sizeof symbol, sizeof symbol);
        if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
            symbol.st_size < kCode || !has_name(symbol))
            continue;
        search.several |= search.value != 0 && search.value != symbol.st_value;
        search.value = symbol.st_value;
    }
    search.at += count;
    if (count < left) return true;
    found(fd);
    return false;
}

// False: there is nothing more to read.
bool go_on(long fd) {
    Search& search = g.search;
    switch (search.step) {
        case Step::open:
            search.step = Step::names;
            if (!read_headers(fd)) return false;
            search.at = search.name_count = search.value = 0;
            search.several = false;
            return true;
        case Step::names:
            return read_names(fd);
        case Step::symbols:
            return read_symbols(fd);
        default:
            return false;
    }
}

}  // namespace

void reserved_by(uint64_t pc) {
    if (pc == 0 || g.search.step != Step::nothing || g.pc_count == kPcs ||
        g.count.load(std::memory_order_relaxed) == kMost)
        return;
    for (size_t i = 0; i < g.pc_count; ++i)
        if (g.pcs[i] == pc) return;
    g.pcs[g.pc_count++] = pc;
    g.search.pc = pc;
    g.search.step = Step::open;
}

bool search() {
    Search& search = g.search;
    if (search.step == Step::nothing || sandbox::entered()) return false;
    if (search.step == Step::open && !is_new()) {
        search.step = Step::nothing;
        return false;
    }
    const size_t before = g.count.load(std::memory_order_relaxed);
    const long fd = open_file();
    bool more = fd >= 0;
    for (uint64_t read = 0; more && read < kReadByTick; read += sizeof g_text) more = go_on(fd);
    if (fd >= 0) kernel::call(SYS_close, fd);
    if (!more) search.step = Step::nothing;
    return g.count.load(std::memory_order_relaxed) != before;
}

size_t ask(Use (&to)[kMost]) {
    const size_t known = g.count.load(std::memory_order_acquire);
    if (known == 0 || sandbox::entered()) return 0;
    const BoundedLock lock(g_busy, 1);
    if (!lock || !none_is_unloaded()) return 0;
    const int error = errno;
    size_t count = 0;
    for (size_t i = 0; i < known; ++i)
        if (is_still_there(g.libraries[i]) && read_use(g.libraries[i], &to[count])) ++count;
    errno = error;
    return count;
}

void after_fork_in_child() {
    g_busy.clear();
    g_unloading.store(0);  // the thread that forks may still be in one: then it is -1 behind it
    if (g.search.step == Step::nothing) return;
    // Its parent's thread was at it: from the beginning, when much is there again.
    g.search.step = Step::nothing;
    g.pc_count = g.path_count = 0;
}

}  // namespace tachograph::library_allocators

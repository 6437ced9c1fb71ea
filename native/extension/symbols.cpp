#include "symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

using Piece = void (*)(const char* text, size_t length, void* context);
#if defined(__GLIBCXX__)
// What GCC's C++ library makes a readable name of, piece by piece, without memory of its own.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, Piece piece, void* context);
#else
// The other one has no way that is bounded: there names stay as they are.
static int __gcclibcxx_demangle_callback(const char*, Piece, void*) { return -1; }
#endif

namespace tachograph {
namespace {

// Bytes of one table of symbols, or of their names, that are read; the largest libraries have a
// tenth of it.
constexpr uint64_t kMostTable = 1u << 30;
// Tables of symbols that are read of one file: it has one of each kind.
constexpr size_t kMostTables = 4;

// A regular file. It is read and not mapped: one that another process truncates meanwhile ends
// sooner, and a mapping of it would be a SIGBUS.
class File {
  public:
    explicit File(const std::string& path) : fd_(open_regular(path.c_str())) {
        struct stat status{};
        if (fd_ >= 0 && fstat(fd_, &status) == 0 && status.st_size > 0)
            size_ = static_cast<uint64_t>(status.st_size);
    }
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // The program has named it, and may not open it itself: to open a device is an act, so the file
    // is looked at first.
    static int open_regular(const char* path) {
        const int place = ::open(path, O_PATH | O_CLOEXEC);
        if (place < 0) return -1;
        struct stat status{};
        int opened = -1;
        if (fstat(place, &status) == 0 && S_ISREG(status.st_mode)) {
            char link[40];
            snprintf(link, sizeof link, "/proc/self/fd/%d", place);
            opened = ::open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        }
        ::close(place);
        return opened;
    }

    // What there is of `count` values from `offset` on.
    template <typename T>
    std::vector<T> read(uint64_t offset, uint64_t count) const {
        if (offset >= size_) return {};
        count = std::min(count, std::min(size_ - offset, kMostTable) / sizeof(T));
        std::vector<T> values(count);
        auto* bytes = reinterpret_cast<uint8_t*>(values.data());
        uint64_t done = 0;
        while (done < count * sizeof(T)) {
            const ssize_t got = pread(fd_, bytes + done, count * sizeof(T) - done,
                                      static_cast<off_t>(offset + done));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            done += static_cast<uint64_t>(got);
        }
        // Not resize(), which could grow as well: GCC 16 warns of what it would write there.
        values.erase(values.begin() + static_cast<std::ptrdiff_t>(done / sizeof(T)), values.end());
        return values;
    }

  private:
    int fd_;
    uint64_t size_ = 0;
};

struct Symbol {
    uint64_t start;
    uint64_t size;
    uint64_t section_end;  // of the section that it is in
    uint32_t table;        // whose texts have its name
    uint32_t name;
};

// Symbols sorted by address, and the texts that hold their names.
struct Symbols {
    std::vector<Symbol> sorted;
    std::vector<std::vector<uint8_t>> texts;
    std::vector<uint64_t> nearest;  // of each address: where the last symbol before it begins

    std::string name(const Symbol& symbol) const {
        const auto& strings = texts[symbol.table];
        const auto* start = reinterpret_cast<const char*>(strings.data()) + symbol.name;
        return {start, strnlen(start, strings.size() - symbol.name)};
    }

    // The symbol that holds the address of this number; assembly symbols without a size reach to
    // the next one, or to the end of their section: the stubs of calls into other libraries lie
    // behind _init, in a section of their own.
    const Symbol* holder(uint64_t address, size_t number) const {
        auto after = std::upper_bound(sorted.begin(), sorted.end(), address,
                                      [](uint64_t a, const Symbol& s) { return a < s.start; });
        const Symbol* sizeless = nullptr;
        for (int looked = 0; after != sorted.begin() && looked < 16; ++looked) {
            --after;
            if (after->size > 0 && address - after->start < after->size) return &*after;
            if (after->size == 0 && !sizeless && after->start == nearest[number] &&
                address < after->section_end)
                sizeless = &*after;
        }
        return sizeless;
    }
};

bool is_function(const Elf64_Sym& symbol) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
           symbol.st_value != 0;
}

// Those of .symtab, where it was not stripped, and of .dynsym that may hold one of `addresses`,
// which rise. A library has hundreds of thousands, of which few are asked for.
Symbols functions(const File& file, const Elf64_Ehdr& header,
                  const std::vector<uint64_t>& addresses) {
    const auto sections = file.read<Elf64_Shdr>(header.e_shoff, header.e_shnum);
    Symbols found;
    found.nearest.resize(addresses.size());
    for (const Elf64_Shdr& section : sections) {
        if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) ||
            section.sh_link >= sections.size() || found.texts.size() == kMostTables)
            continue;
        const Elf64_Shdr& strings_section = sections[section.sh_link];
        const auto table = static_cast<uint32_t>(found.texts.size());
        const auto& strings = found.texts.emplace_back(
            file.read<uint8_t>(strings_section.sh_offset, strings_section.sh_size));
        for (const auto& symbol :
             file.read<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
            if (!is_function(symbol)) continue;
            const auto next = std::lower_bound(addresses.begin(), addresses.end(), symbol.st_value);
            if (next == addresses.end()) continue;
            uint64_t& nearest = found.nearest[static_cast<size_t>(next - addresses.begin())];
            nearest = std::max(nearest, symbol.st_value);
            if (symbol.st_size != 0 && *next - symbol.st_value >= symbol.st_size) continue;
            if (symbol.st_name >= strings.size() || strings[symbol.st_name] == 0) continue;
            const uint64_t section_end =
                symbol.st_shndx < sections.size()
                    ? sections[symbol.st_shndx].sh_addr + sections[symbol.st_shndx].sh_size
                    : UINT64_MAX;
            found.sorted.push_back(
                {symbol.st_value, symbol.st_size, section_end, table, symbol.st_name});
        }
    }
    std::stable_sort(found.sorted.begin(), found.sorted.end(),
                     [](const Symbol& a, const Symbol& b) { return a.start < b.start; });
    for (size_t i = 1; i < found.nearest.size(); ++i)
        found.nearest[i] = std::max(found.nearest[i], found.nearest[i - 1]);
    return found;
}

std::optional<uint64_t> address_of(const std::vector<Elf64_Phdr>& programs, uint64_t offset) {
    for (const Elf64_Phdr& program : programs)
        if (program.p_type == PT_LOAD && offset >= program.p_offset &&
            offset - program.p_offset < program.p_filesz)
            return program.p_vaddr + (offset - program.p_offset);
    return std::nullopt;
}

// A name may be made so that its readable form, or the time to make it, grows with its power: it is
// made within bounds, and is else shown as it is. The stack that it takes grows with its length.
constexpr size_t kLongestMangled = 4096;
constexpr size_t kLongestReadable = 16 * 1024;

struct Readable {
    jmp_buf too_long;
    size_t length;
    char text[kLongestReadable];
};

void add_piece(const char* text, size_t length, void* context) {
    auto* readable = static_cast<Readable*>(context);
    if (length > kLongestReadable - readable->length) longjmp(readable->too_long, 1);
    memcpy(readable->text + readable->length, text, length);
    readable->length += length;
}

// No object with a destructor is alive here: longjmp passes it by.
bool demangle(const char* mangled, Readable* readable) {
    readable->length = 0;
    if (setjmp(readable->too_long) != 0) return false;
    return __gcclibcxx_demangle_callback(mangled, add_piece, readable) == 0;
}

std::string demangled(const std::string& mangled) {
    if (mangled.size() > kLongestMangled) return mangled;
    const auto readable = std::make_unique<Readable>();
    if (!demangle(mangled.c_str(), readable.get())) return mangled;
    return {readable->text, readable->length};
}

std::optional<Elf64_Ehdr> image(const File& file) {
    const auto headers = file.read<Elf64_Ehdr>(0, 1);
    if (headers.empty() || memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0 ||
        headers[0].e_ident[EI_CLASS] != ELFCLASS64)
        return std::nullopt;
    return headers[0];
}

}  // namespace

std::vector<Function> resolve_symbols(const std::string& path, const std::string& debug_path,
                                      const std::vector<uint64_t>& offsets) {
    std::vector<Function> found(offsets.size());
    const File file(path);
    const auto header = image(file);
    if (!header) return found;
    const auto programs = file.read<Elf64_Phdr>(header->e_phoff, header->e_phnum);
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < offsets.size(); ++i) {
        found[i].address = address_of(programs, offsets[i]);
        if (found[i].address) addresses.push_back(*found[i].address);
    }
    std::sort(addresses.begin(), addresses.end());
    const Symbols symbols = functions(file, *header, addresses);
    Symbols more;
    if (!debug_path.empty()) {
        const File debug_file(debug_path);
        if (const auto debug_header = image(debug_file))
            more = functions(debug_file, *debug_header, addresses);
    }
    for (size_t i = 0; i < offsets.size(); ++i) {
        if (!found[i].address) continue;
        const uint64_t address = *found[i].address;
        const auto number = static_cast<size_t>(
            std::lower_bound(addresses.begin(), addresses.end(), address) - addresses.begin());
        const Symbol* symbol = symbols.holder(address, number);
        const Symbols* from = &symbols;
        // A symbol without a size may be any before it, one of the debug file is better.
        if (!symbol || symbol->size == 0)
            if (const Symbol* other = more.holder(address, number)) symbol = other, from = &more;
        if (!symbol) continue;
        found[i].name = demangled(from->name(*symbol));
        found[i].start = symbol->start;
    }
    return found;
}

}  // namespace tachograph

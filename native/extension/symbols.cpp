#include "symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

namespace tachograph {
namespace {

// A read-only view of a whole file.
class File {
  public:
    explicit File(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) return;
        struct stat status{};
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
            void* got =
                mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
            if (got != MAP_FAILED)
                bytes_ = {static_cast<const uint8_t*>(got), static_cast<size_t>(status.st_size)};
        }
        ::close(fd);
    }
    ~File() {
        if (!bytes_.empty()) munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    template <typename T>
    std::optional<T> read(uint64_t offset) const {
        if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
        T value;
        memcpy(&value, bytes_.data() + offset, sizeof value);
        return value;
    }
    std::span<const uint8_t> part(uint64_t offset, uint64_t size) const {
        if (offset > bytes_.size() || bytes_.size() - offset < size) return {};
        return bytes_.subspan(offset, size);
    }

  private:
    std::span<const uint8_t> bytes_;
};

struct Symbol {
    uint64_t start;
    uint64_t size;
    std::string_view name;
};

template <typename T>
std::vector<T> table(const File& file, uint64_t offset, uint64_t count) {
    std::vector<T> entries;
    for (uint64_t i = 0; i < count; ++i) {
        const auto entry = file.read<T>(offset + i * sizeof(T));
        if (!entry) break;
        entries.push_back(*entry);
    }
    return entries;
}

std::string_view text(std::span<const uint8_t> strings, uint32_t at) {
    if (at >= strings.size()) return {};
    const auto* start = reinterpret_cast<const char*>(strings.data()) + at;
    return {start, strnlen(start, strings.size() - at)};
}

// .symtab where it was not stripped, and .dynsym, sorted by address.
std::vector<Symbol> functions(const File& file, const Elf64_Ehdr& header) {
    const auto sections = table<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
    std::vector<Symbol> found;
    for (const Elf64_Shdr& section : sections) {
        if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) ||
            section.sh_link >= sections.size())
            continue;
        const Elf64_Shdr& strings_section = sections[section.sh_link];
        const auto strings = file.part(strings_section.sh_offset, strings_section.sh_size);
        for (const auto& symbol :
             table<Elf64_Sym>(file, section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
            const unsigned type = ELF64_ST_TYPE(symbol.st_info);
            if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF ||
                symbol.st_value == 0)
                continue;
            if (const auto name = text(strings, symbol.st_name); !name.empty())
                found.push_back({symbol.st_value, symbol.st_size, name});
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Symbol& a, const Symbol& b) { return a.start < b.start; });
    return found;
}

std::optional<uint64_t> address_of(const std::vector<Elf64_Phdr>& programs, uint64_t offset) {
    for (const Elf64_Phdr& program : programs)
        if (program.p_type == PT_LOAD && offset >= program.p_offset &&
            offset - program.p_offset < program.p_filesz)
            return program.p_vaddr + (offset - program.p_offset);
    return std::nullopt;
}

std::string demangled(std::string_view name) {
    const std::string mangled(name);
    int status = -1;
    char* readable = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
    if (status != 0 || !readable) return mangled;
    std::string result(readable);
    free(readable);
    return result;
}

// The symbol that holds `address`; assembly symbols without a size reach to the next one.
const Symbol* holder(const std::vector<Symbol>& symbols, uint64_t address) {
    auto after = std::upper_bound(symbols.begin(), symbols.end(), address,
                                  [](uint64_t a, const Symbol& s) { return a < s.start; });
    const Symbol* sizeless = nullptr;
    for (int looked = 0; after != symbols.begin() && looked < 16; ++looked) {
        --after;
        if (after->size > 0 && address - after->start < after->size) return &*after;
        if (after->size == 0 && !sizeless) sizeless = &*after;
    }
    return sizeless;
}

}  // namespace

std::vector<std::optional<std::string>> resolve_symbols(const std::string& path,
                                                        const std::vector<uint64_t>& offsets) {
    std::vector<std::optional<std::string>> names(offsets.size());
    const File file(path);
    const auto header = file.read<Elf64_Ehdr>(0);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
        return names;
    const auto programs = table<Elf64_Phdr>(file, header->e_phoff, header->e_phnum);
    const auto symbols = functions(file, *header);
    for (size_t i = 0; i < offsets.size(); ++i) {
        const auto address = address_of(programs, offsets[i]);
        if (!address) continue;
        if (const Symbol* symbol = holder(symbols, *address)) names[i] = demangled(symbol->name);
    }
    return names;
}

}  // namespace tachograph

#include "spool/settings.h"

#include "base/kernel.h"
#include "base/sandbox.h"

#include <elf.h>
#include <fcntl.h>
#include <cstring>

namespace tachograph::settings {
namespace {

constexpr int kMostScripts = 4;  // as many as the kernel follows
constexpr char kLoader[] = "ld-linux-x86-64.so";

class File {
  public:
    explicit File(const char* path)
        : fd_(kernel::call(SYS_openat, AT_FDCWD, kernel::address(path),
                           O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
    ~File() {
        if (fd_ >= 0) kernel::call(SYS_close, fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    // How many bytes there were, 0 if it cannot be read.
    size_t read(void* to, size_t size, uint64_t at) const {
        const long got = kernel::call(SYS_pread64, fd_, kernel::address(to),
                                      static_cast<long>(size), static_cast<long>(at));
        return got > 0 ? static_cast<size_t>(got) : 0;
    }

  private:
    long fd_;
};

// On the stack, which may be that of a vfork child's parent.
constexpr size_t kMostSegments = 32;
constexpr size_t kMostDynamic = 128;

// AddressSanitizer's runtime insists on being loaded before every other library.
bool is_sanitizer(const char* library) {
    return strncmp(library, "libasan.so", 10) == 0 || strncmp(library, "libclang_rt.asan", 16) == 0;
}

class Image {
  public:
    Image(const File& file, const Elf64_Ehdr& header) : file_(file) {
        for (; count_ < header.e_phnum && count_ < kMostSegments; ++count_)
            if (file.read(&segments_[count_], sizeof segments_[0],
                          header.e_phoff + count_ * sizeof segments_[0]) != sizeof segments_[0])
                break;
    }

    // Static: it loads nothing, but what it starts may.
    bool has_our_loader() const {
        const Elf64_Phdr* part = find(PT_INTERP);
        if (!part) return true;
        char loader[256];
        const size_t room = sizeof loader - 1;
        loader[file_.read(loader, part->p_filesz < room ? part->p_filesz : room, part->p_offset)] =
            0;
        return strstr(loader, kLoader) != nullptr;
    }

    bool needs_sanitizer() const {
        const Elf64_Phdr* part = find(PT_DYNAMIC);
        if (!part) return false;
        Elf64_Dyn entries[kMostDynamic];
        const size_t room = sizeof entries;
        const size_t got =
            file_.read(entries, part->p_filesz < room ? part->p_filesz : room, part->p_offset);
        const size_t count = got / sizeof entries[0];
        uint64_t strings = 0;
        for (size_t i = 0; i < count; ++i)
            if (entries[i].d_tag == DT_STRTAB) strings = offset_of(entries[i].d_un.d_ptr);
        for (size_t i = 0; strings != 0 && i < count && entries[i].d_tag != DT_NULL; ++i) {
            if (entries[i].d_tag != DT_NEEDED) continue;
            char name[32] = {};
            file_.read(name, sizeof name - 1, strings + entries[i].d_un.d_val);
            if (is_sanitizer(name)) return true;
        }
        return false;
    }

  private:
    const Elf64_Phdr* find(uint32_t type) const {
        for (size_t i = 0; i < count_; ++i)
            if (segments_[i].p_type == type) return &segments_[i];
        return nullptr;
    }

    uint64_t offset_of(uint64_t address) const {
        for (size_t i = 0; i < count_; ++i) {
            const Elf64_Phdr& part = segments_[i];
            if (part.p_type == PT_LOAD && address - part.p_vaddr < part.p_filesz)
                return part.p_offset + address - part.p_vaddr;
        }
        return 0;
    }

    const File& file_;
    Elf64_Phdr segments_[kMostSegments];
    size_t count_ = 0;
};

bool image_loadable(const File& file, const Elf64_Ehdr& header) {
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) return false;
    const Image image(file, header);
    return image.has_our_loader() && !image.needs_sanitizer();
}

// The program named in the first line of a script, in place; nullptr if there is none.
char* interpreter(char* text) {
    char* at = text + 2;
    at += strspn(at, " \t");
    at[strcspn(at, " \t\n")] = 0;
    return *at ? at : nullptr;
}

}  // namespace

bool loadable(const char* program) {
    if (sandbox::entered()) return true;  // it cannot be asked for
    if (kernel::call(SYS_access, kernel::address(library()), R_OK) != 0) return false;
    char head[257];
    const char* path = program;
    for (int scripts = 0; path && scripts <= kMostScripts; ++scripts) {
        const File file(path);
        const size_t size = file.read(head, sizeof head - 1, 0);
        head[size] = 0;
        Elf64_Ehdr header;
        if (size >= sizeof header && memcmp(head, ELFMAG, SELFMAG) == 0) {
            memcpy(&header, head, sizeof header);
            return image_loadable(file, header);
        }
        path = size > 2 && head[0] == '#' && head[1] == '!' ? interpreter(head) : nullptr;
    }
    return true;  // not to be told, or nothing that can be started
}

}  // namespace tachograph::settings

#include "spool/settings.h"

#include "arch/processor.h"
#include "base/kernel.h"
#include "base/sandbox.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>

namespace tachograph::settings {
namespace {

constexpr int kMostScripts = 4;  // as many as the kernel follows

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
        return strstr(loader, TG_LOADER) != nullptr;
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
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != TG_MACHINE) return false;
    const Image image(file, header);
    return image.has_our_loader() && !image.needs_sanitizer();
}

// Runtimes that are preloaded into programs that were not built with them.
constexpr const char* kRuntimes[] = {"libasan.so", "libtsan.so",   "libubsan.so",
                                     "liblsan.so", "libhwasan.so", "libclang_rt."};

bool preloads_sanitizer(char* const* environment) {
#if defined(__SANITIZE_ADDRESS__)
    return false;  // they are for us
#endif
    constexpr char kPreload[] = "LD_PRELOAD=";
    for (; environment && *environment; ++environment) {
        if (strncmp(*environment, kPreload, sizeof kPreload - 1) != 0) continue;
        for (const char* at = *environment + sizeof kPreload - 1; *at;) {
            const size_t length = strcspn(at, ": ");
            const char* name = at;
            for (size_t i = 0; i < length; ++i)
                if (at[i] == '/') name = at + i + 1;
            for (const char* runtime : kRuntimes)
                if (strncmp(name, runtime, strlen(runtime)) == 0) return true;
            at += length;
            at += strspn(at, ": ");
        }
    }
    return false;
}

// As the kernel judges it: such a program runs with AT_SECURE. Its file may not be readable.
bool gets_other_rights(const char* path) {
    const long user = kernel::call(SYS_getuid);
    const long group = kernel::call(SYS_getgid);
    if (kernel::call(SYS_geteuid) != user || kernel::call(SYS_getegid) != group) return true;
    struct stat status;
    if (kernel::call(SYS_newfstatat, AT_FDCWD, kernel::address(path), kernel::address(&status),
                     0) != 0)
        return false;
    constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != static_cast<uid_t>(user)) return true;
    if ((status.st_mode & kSetGroup) == kSetGroup && status.st_gid != static_cast<gid_t>(group))
        return true;
    // Root has them all already.
    return user != 0 && kernel::call(SYS_getxattr, kernel::address(path),
                                     kernel::address("security.capability"), 0, 0) > 0;
}

// The program named in the first line of a script, in place; nullptr if there is none.
char* interpreter(char* text) {
    char* at = text + 2;
    at += strspn(at, " \t");
    at[strcspn(at, " \t\n")] = 0;
    return *at ? at : nullptr;
}

// Whether our library can be loaded by the program in this file, and may be.
bool loadable(const char* program) {
    if (kernel::call(SYS_faccessat, AT_FDCWD, kernel::address(library()), R_OK) != 0) return false;
    char head[257];
    const char* path = program;
    for (int scripts = 0; path && scripts <= kMostScripts; ++scripts) {
        const File file(path);
        const size_t size = file.read(head, sizeof head - 1, 0);
        head[size] = 0;
        const bool is_script = size > 2 && head[0] == '#' && head[1] == '!';
        if (!is_script && gets_other_rights(path)) return false;
        Elf64_Ehdr header;
        if (size >= sizeof header && memcmp(head, ELFMAG, SELFMAG) == 0) {
            memcpy(&header, head, sizeof header);
            return image_loadable(file, header);
        }
        path = is_script ? interpreter(head) : nullptr;
    }
    return true;  // not to be told, or nothing that can be started
}

}  // namespace

bool left_alone(const char* program, char* const* environment) {
    if (preloads_sanitizer(environment)) return true;
    // In a sandbox nothing can be asked.
    return program && !sandbox::entered() && !loadable(program);
}

const char* find_on_path(const char* name, char* to, size_t size) {
    const char* folders = getenv("PATH");
    if (!folders) folders = "/bin:/usr/bin";
    const size_t length = strlen(name);
    for (const char* at = folders; length > 0 && !sandbox::entered();) {
        const size_t folder = strcspn(at, ":");
        // An empty one is the present folder.
        const size_t prefix = folder == 0 ? 0 : folder + 1;
        if (prefix + length + 1 > size) return nullptr;
        memcpy(to, at, folder);
        if (folder != 0) to[folder] = '/';
        memcpy(to + prefix, name, length + 1);
        struct stat status;
        if (kernel::call(SYS_faccessat, AT_FDCWD, kernel::address(to), X_OK) == 0 &&
            kernel::call(SYS_newfstatat, AT_FDCWD, kernel::address(to), kernel::address(&status),
                         0) == 0 &&
            S_ISREG(status.st_mode))
            return to;
        at += folder;
        if (*at++ == 0) return nullptr;
    }
    return nullptr;
}

}  // namespace tachograph::settings

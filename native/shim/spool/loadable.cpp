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

bool image_loadable(const File& file, const Elf64_Ehdr& header) {
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) return false;
    for (uint64_t i = 0; i < header.e_phnum && i < 64; ++i) {
        Elf64_Phdr program;
        if (file.read(&program, sizeof program, header.e_phoff + i * sizeof program) !=
            sizeof program)
            return true;
        if (program.p_type != PT_INTERP) continue;
        char loader[256];
        const size_t room = sizeof loader - 1;
        const size_t size = program.p_filesz < room ? program.p_filesz : room;
        loader[file.read(loader, size, program.p_offset)] = 0;
        return strstr(loader, kLoader) != nullptr;
    }
    return true;  // static: it loads nothing, but what it starts may
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

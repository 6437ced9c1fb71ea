#include "base/process_maps.h"

#include "base/kernel.h"
#include "base/kernel_text.h"

#include <fcntl.h>
#include <cstring>

namespace tachograph::process_maps {
namespace {

uint64_t hash(const char* text, size_t length) {  // FNV-1a
    uint64_t h = 0xCBF29CE484222325ull;
    for (size_t i = 0; i < length; ++i) h = (h ^ static_cast<uint8_t>(text[i])) * 0x100000001B3ull;
    return h;
}

bool is(const Mapping& mapping, const char* path) {
    return mapping.path_length == strlen(path) &&
           memcmp(mapping.path, path, mapping.path_length) == 0;
}

class Lines {
  public:
    Lines(void (*visit)(const Mapping& mapping, void* context), void* context)
        : visit_(visit), context_(context) {}

    static bool line(const char* start, const char* end, void* context) {
        Mapping mapping;
        if (parse(start, end, &mapping)) static_cast<Lines*>(context)->mapping(mapping);
        return true;
    }

  private:
    void mapping(Mapping& mapping) {
        const bool file = mapping.path_length > 0 && mapping.path[0] == '/';
        if (mapping.file_offset == 0 && (file || is(mapping, "[vdso]"))) {
            image_ = mapping.start;
            image_path_ = mapping.path_hash;
        }
        if (mapping.path_length > 0 && image_path_ == mapping.path_hash) mapping.image = image_;
        visit_(mapping, context_);
    }

    void (*visit_)(const Mapping& mapping, void* context);
    void* context_;
    uint64_t image_ = 0;
    uint64_t image_path_ = 0;
};

}  // namespace

// "start-end perms offset dev inode      path"
bool parse(const char* line, const char* end, Mapping* mapping) {
    const char* at = read_hexadecimal(line, &mapping->start);
    if (at >= end || *at != '-') return false;
    at = read_hexadecimal(at + 1, &mapping->end);
    if (end - at < 7 || *at != ' ') return false;
    mapping->readable = at[1] == 'r';
    mapping->writable = at[2] == 'w';
    mapping->executable = at[3] == 'x';
    mapping->shared = at[4] == 's';
    at = read_hexadecimal(at + 6, &mapping->file_offset);
    for (int fields = 0; fields < 2 && at < end; ++fields) {
        while (at < end && *at == ' ') ++at;
        while (at < end && *at != ' ') ++at;
    }
    while (at < end && *at == ' ') ++at;
    mapping->path = at;
    mapping->path_length = static_cast<size_t>(end - at);
    mapping->path_hash = hash(mapping->path, mapping->path_length);
    return true;
}

bool each_line(const char* path, char* buffer, size_t size,
               bool (*visit)(const char* line, const char* end, void* context), void* context) {
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address(path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t kept = 0;
    bool goes_on = true;
    long got = 0;
    while (goes_on) {
        got = kernel::call(SYS_read, fd, kernel::address(buffer + kept),
                           static_cast<long>(size - kept));
        if (got <= 0) break;
        const char* end = buffer + kept + got;
        const char* start = buffer;
        while (const auto* newline = static_cast<const char*>(
                   memchr(start, '\n', static_cast<size_t>(end - start)))) {
            goes_on = goes_on && visit(start, newline, context);
            start = newline + 1;
        }
        kept = static_cast<size_t>(end - start);
        if (kept >= size) kept = 0;  // no mapping has so long a line
        memmove(buffer, start, kept);
    }
    kernel::call(SYS_close, fd);
    return got == 0;
}

bool each(char* buffer, size_t size, void (*visit)(const Mapping& mapping, void* context),
          void* context) {
    Lines lines(visit, context);
    return each_line("/proc/self/maps", buffer, size, Lines::line, &lines);
}

}  // namespace tachograph::process_maps

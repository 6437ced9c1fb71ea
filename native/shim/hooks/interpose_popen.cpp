// popen(3). glibc's own starts the shell with the program's environment, through a function that
// cannot be interposed, and its stream is known to its pclose and fclose alone. So it is glibc's
// own that runs, with a command that gives our variables to a shell in its own place.
#include "hooks/interposed.h"
#include "memory/libc_allocators.h"
#include "spool/settings.h"

#include <alloca.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tachograph {
namespace {

constexpr char kShell[] = "/bin/sh";
constexpr char kName[] = " sh";  // what it calls itself
// The kernel takes 128 KiB in one argument: what may come near it is left as it is.
constexpr size_t kMostText = 96 * 1024;

using Popen = FILE* (*)(const char*, const char*);
constinit Popen g_popen = nullptr;

__attribute__((constructor)) void resolve() { next_function(&g_popen, "popen"); }

size_t quoted_length(const char* text) {
    size_t length = 2;
    for (; *text; ++text) length += *text == '\'' ? 4 : 1;
    return length;
}

class Text {
  public:
    explicit Text(char* to) : at_(to) {}
    void add(const char* text) {
        const size_t length = strlen(text);
        memcpy(at_, text, length + 1);
        at_ += length;
    }
    void add_quoted(const char* text) {
        *at_++ = '\'';
        for (; *text; ++text) {
            if (*text == '\'')
                add("'\\''");
            else
                *at_++ = *text;
        }
        *at_++ = '\'';
        *at_ = 0;
    }

  private:
    char* at_;
};

bool is_in(const char* entry, char* const* environment) {
    for (; environment && *environment; ++environment)
        if (*environment == entry) return true;
    return false;
}

// NAME='VALUE' for each of our entries.
size_t length_of_ours(char* const* entries) {
    size_t length = 0;
    for (; *entries; ++entries)
        if (!is_in(*entries, environ)) length += 1 + quoted_length(*entries);
    return length;
}

void add_ours(char* const* entries, Text* text) {
    for (; *entries; ++entries) {
        if (is_in(*entries, environ)) continue;
        const size_t name = strcspn(*entries, "=") + 1;
        char head[64];
        if (name >= sizeof head) continue;
        memcpy(head, *entries, name);
        head[name] = 0;
        text->add(" ");
        text->add(head);
        text->add_quoted(*entries + name);
    }
}

FILE* with_settings(const char* command, const char* type) {
    const settings::Size needs = settings::size_of_child_environment(environ);
    if (needs.entries == 0 || settings::left_alone(kShell, environ)) return g_popen(command, type);
    auto** entries = static_cast<char**>(alloca(needs.entries * sizeof(char*)));
    settings::fill_child_environment(environ, entries, static_cast<char*>(alloca(needs.text)));
    const char* run = shell_takes_dashes() ? "; exec /bin/sh -c -- " : "; exec /bin/sh -c ";
    const size_t length = strlen("export") + length_of_ours(entries) + strlen(run) +
                          quoted_length(command) + strlen(kName) + 1;
    if (length > kMostText) return g_popen(command, type);
    auto* whole = static_cast<char*>(libc_allocators::g_real.malloc(length));
    if (!whole) return g_popen(command, type);
    Text text(whole);
    text.add("export");
    add_ours(entries, &text);
    text.add(run);
    text.add_quoted(command);
    text.add(kName);
    FILE* stream = g_popen(whole, type);
    const int error = errno;
    libc_allocators::g_real.free(whole);
    errno = error;
    return stream;
}

}  // namespace
}  // namespace tachograph

using namespace tachograph;

TG_EXPORT FILE* popen(const char* command, const char* type) {
    if (!next_function(&g_popen, "popen")) return nullptr;
    return settings::pass_to_children() && command ? with_settings(command, type)
                                                   : g_popen(command, type);
}

// What starts programs. The new program's environment gets our variables: on the stack, with
// nothing written anywhere, because the caller may be a vfork child that shares its parent's
// memory.
#include "base/libc.h"

#include "hooks/interposed.h"
#include "process/lifecycle.h"
#include "spool/process_log.h"
#include "spool/settings.h"

#include <alloca.h>
#include <spawn.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstring>

namespace tachograph {
namespace {

using Strings = char* const*;

struct Real {
    int (*execve)(const char*, Strings, Strings) = nullptr;
    int (*execvpe)(const char*, Strings, Strings) = nullptr;
    int (*fexecve)(int, Strings, Strings) = nullptr;
    int (*execveat)(int, const char*, Strings, Strings, int) = nullptr;
    int (*posix_spawn)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                       const posix_spawnattr_t*, Strings, Strings) = nullptr;
    int (*posix_spawnp)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                        const posix_spawnattr_t*, Strings, Strings) = nullptr;
};
constinit Real g;

#define TG_REAL(name) next_function(&g.name, #name)

__attribute__((constructor)) void resolve() {
    TG_REAL(execve);
    TG_REAL(execvpe);
    TG_REAL(fexecve);
    TG_REAL(execveat);
    TG_REAL(posix_spawn);
    TG_REAL(posix_spawnp);
}

// `start(environment)`, with an environment that has our variables. `program` is its file, nullptr
// if that is not known.
template <typename F>
int with_settings(const char* program, Strings environment, F start) {
    const settings::Needs needs = settings::needs(environment);
    if (needs.entries == 0 || (program && !settings::loadable(program))) return start(environment);
    auto** entries = static_cast<char**>(alloca(needs.entries * sizeof(char*)));
    settings::fill(environment, entries, static_cast<char*>(alloca(needs.text)));
    return start(static_cast<Strings>(entries));
}

// The same, where the new program takes the place of this one.
template <typename F>
int replace_program(const char* program, Strings environment, F real) {
    const bool ready = lifecycle::before_exec(program);
    const int result = with_settings(program, environment, real);
    const int error = errno;
    if (ready) lifecycle::after_failed_exec();
    errno = error;
    return result;
}

const char* with_folder(const char* file) { return strchr(file, '/') ? file : nullptr; }

int replace(const char* path, Strings arguments, Strings environment) {
    return replace_program(path, environment,
                           [=](Strings e) { return TG_REAL(execve)(path, arguments, e); });
}

// Found on PATH, which is that of this program's own environment whatever the new one's is.
int replace_found(const char* file, Strings arguments, Strings environment) {
    return replace_program(with_folder(file), environment,
                           [=](Strings e) { return TG_REAL(execvpe)(file, arguments, e); });
}

// Arguments of execl and its relatives, `first` and those that follow it up to a NULL.
size_t count_arguments(const char* first, va_list list) {
    size_t count = 1;
    if (first)
        while (va_arg(list, const char*)) ++count;
    return count;
}

char** collect_arguments(char** to, const char* first, va_list list) {
    *to = const_cast<char*>(first);
    while (*to) *++to = va_arg(list, char*);
    return to;
}

}  // namespace
}  // namespace tachograph

using namespace tachograph;

TG_EXPORT int execve(const char* path, Strings arguments, Strings environment) {
    return replace(path, arguments, environment);
}
TG_EXPORT int execv(const char* path, Strings arguments) {
    return replace(path, arguments, environ);
}
TG_EXPORT int execvp(const char* file, Strings arguments) {
    return replace_found(file, arguments, environ);
}
TG_EXPORT int execvpe(const char* file, Strings arguments, Strings environment) {
    return replace_found(file, arguments, environment);
}
TG_EXPORT int fexecve(int file, Strings arguments, Strings environment) {
    return replace_program(nullptr, environment,
                           [=](Strings e) { return TG_REAL(fexecve)(file, arguments, e); });
}
TG_EXPORT int execveat(int folder, const char* path, Strings arguments, Strings environment,
                       int flags) {
    return replace_program(nullptr, environment, [=](Strings e) {
        return TG_REAL(execveat)(folder, path, arguments, e, flags);
    });
}

#define TG_COLLECT(arguments, first)                                       \
    va_list list;                                                          \
    va_start(list, first);                                                 \
    const size_t count = count_arguments(first, list) + 1;                 \
    va_end(list);                                                          \
    auto** arguments = static_cast<char**>(alloca(count * sizeof(char*))); \
    va_start(list, first);                                                 \
    collect_arguments(arguments, first, list)

TG_EXPORT int execl(const char* path, const char* first, ...) {
    TG_COLLECT(arguments, first);
    va_end(list);
    return replace(path, arguments, environ);
}
TG_EXPORT int execlp(const char* file, const char* first, ...) {
    TG_COLLECT(arguments, first);
    va_end(list);
    return replace_found(file, arguments, environ);
}
TG_EXPORT int execle(const char* path, const char* first, ...) {
    TG_COLLECT(arguments, first);
    Strings environment = va_arg(list, Strings);
    va_end(list);
    return replace(path, arguments, environment);
}

TG_EXPORT int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                          const posix_spawnattr_t* attributes, Strings arguments,
                          Strings environment) {
    return with_settings(path, environment, [=](Strings e) {
        return TG_REAL(posix_spawn)(pid, path, actions, attributes, arguments, e);
    });
}
TG_EXPORT int posix_spawnp(pid_t* pid, const char* file, const posix_spawn_file_actions_t* actions,
                           const posix_spawnattr_t* attributes, Strings arguments,
                           Strings environment) {
    return with_settings(with_folder(file), environment, [=](Strings e) {
        return TG_REAL(posix_spawnp)(pid, file, actions, attributes, arguments, e);
    });
}

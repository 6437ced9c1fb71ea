// What starts programs. The new program's environment gets our variables: on the stack, with
// nothing written anywhere, because the caller may be a vfork child that shares its parent's
// memory.
#include "base/libc.h"

#include "cpu/signal_mask.h"
#include "hooks/interposed.h"
#include "process/lifecycle.h"
#include "spool/process_log.h"
#include "spool/settings.h"

#include <alloca.h>
#include <fcntl.h>
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

// The stack of a vfork child is its parent's, and may be small.
constexpr size_t kMostPath = 1024;

// `start(environment)` of a program that is not recorded.
template <typename F>
int start_alone(Strings environment, F start) {
    lifecycle::count_exec(1);
    const int result = start(environment);
    const int error = errno;
    if (result != 0) lifecycle::count_exec(-1);  // it has not been started
    errno = error;
    return result;
}

// `start(environment)`, with an environment that has our variables. `program` is its file, nullptr
// if that is not known.
template <typename F>
int with_settings(const char* program, Strings environment, F start) {
    const signal_mask::AsSet mask;
    const settings::Size needs = settings::size_of_child_environment(environment);
    if (needs.entries == 0) return start(environment);
    if (settings::left_alone(program, environment)) return start_alone(environment, start);
    auto** entries = static_cast<char**>(alloca(needs.entries * sizeof(char*)));
    settings::fill_child_environment(environment, entries, static_cast<char*>(alloca(needs.text)));
    const int result = start(static_cast<Strings>(entries));
    if (result != E2BIG && !(result == -1 && errno == E2BIG)) return result;
    return start_alone(environment, start);  // our variables may be what there was no room for
}

// The same, where the new program takes the place of this one. `program` is nullptr if it may not
// be there; `file` as above.
template <typename F>
int replace_program(const char* program, const char* file, Strings environment, F real) {
    const bool ready = lifecycle::before_exec(program);
    const int result = with_settings(file, environment, real);
    const int error = errno;
    if (ready) lifecycle::after_failed_exec();
    errno = error;
    return result;
}

bool has_folder(const char* file) { return strchr(file, '/') != nullptr; }

// "/proc/self/fd/FOLDER/PATH", or what is as good; nullptr if it is too long. Without snprintf,
// which takes more of a small stack.
const char* path_in(int folder, const char* path, char* to, size_t size) {
    if (*path == '/' || (*path != 0 && folder == AT_FDCWD)) return path;
    constexpr char kFolder[] = "/proc/self/fd/";
    char digits[12];
    size_t count = 0;
    for (unsigned rest = static_cast<unsigned>(folder); count == 0 || rest > 0; rest /= 10)
        digits[count++] = static_cast<char>('0' + rest % 10);
    const size_t length = strlen(path);
    if (folder < 0 || sizeof kFolder + count + 1 + length > size) return nullptr;
    memcpy(to, kFolder, sizeof kFolder - 1);
    char* at = to + sizeof kFolder - 1;
    while (count > 0) *at++ = digits[--count];
    if (length > 0) *at++ = '/';
    memcpy(at, path, length + 1);
    return to;
}

int replace(const char* path, Strings arguments, Strings environment) {
    return replace_program(path, path, environment,
                           [=](Strings e) { return TG_REAL(execve)(path, arguments, e); });
}

// Found on PATH, which is that of this program's own environment whatever the new one's is.
int replace_found(const char* file, Strings arguments, Strings environment) {
    char room[kMostPath];
    const bool whole = has_folder(file);
    const char* found = whole ? file : settings::find_on_path(file, room, sizeof room);
    return replace_program(whole ? file : nullptr, found, environment,
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
    char room[kMostPath];
    return replace_program(nullptr, path_in(file, "", room, sizeof room), environment,
                           [=](Strings e) { return TG_REAL(fexecve)(file, arguments, e); });
}
TG_EXPORT int execveat(int folder, const char* path, Strings arguments, Strings environment,
                       int flags) {
    char room[kMostPath];
    const char* found = path_in(folder, path, room, sizeof room);
    return replace_program(nullptr, found, environment, [=](Strings e) {
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
    char room[kMostPath];
    const char* found = has_folder(file) ? file : settings::find_on_path(file, room, sizeof room);
    return with_settings(found, environment, [=](Strings e) {
        return TG_REAL(posix_spawnp)(pid, file, actions, attributes, arguments, e);
    });
}

#include "waits/blocked.h"

#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/safe_read.h"

#include <fcntl.h>
#include <poll.h>
#include <cstring>

namespace tachograph::blocked {
namespace {

// Descriptors of a poll that are looked at.
constexpr uint64_t kMostPolled = 16;

// Calls whose first argument is the descriptor that they wait for.
bool waits_for_descriptor(long number) {
    switch (number) {
        case SYS_read:
        case SYS_write:
        case SYS_pread64:
        case SYS_pwrite64:
        case SYS_readv:
        case SYS_writev:
        case SYS_ioctl:
        case SYS_accept:
        case SYS_accept4:
        case SYS_connect:
        case SYS_sendto:
        case SYS_recvfrom:
        case SYS_sendmsg:
        case SYS_recvmsg:
        case SYS_fsync:
        case SYS_fdatasync:
        case SYS_flock:
        case SYS_getdents64:
        case SYS_splice:
            return true;
        default:
            return false;
    }
}

// Calls whose first argument is the address of what poll takes.
bool waits_for_any_descriptor(long number) {
#ifdef SYS_poll
    if (number == SYS_poll) return true;
#endif
    return number == SYS_ppoll;
}

// Calls whose first argument is the address of a futex.
bool waits_for_futex(long number) {
    constexpr long kFutexWait = 455;  // SYS_futex_wait, since Linux 6.7
    return number == SYS_futex || number == kFutexWait;
}

char* put(char* at, const char* text) {
    while (*text) *at++ = *text++;
    return at;
}

char* put(char* at, uint64_t number) {
    char digits[20];
    int count = 0;
    do digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (count > 0) *at++ = digits[--count];
    return at;
}

bool starts(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }

Target target_of(pid_t tid, uint64_t descriptor) {
    char path[64];
    char* at = put(path, "/proc/self/task/");
    at = put(at, static_cast<uint64_t>(tid));
    at = put(at, "/fd/");
    at = put(at, descriptor);
    *at = 0;
    char link[128];
    const long length = kernel::call(SYS_readlinkat, AT_FDCWD, kernel::address(path),
                                     kernel::address(link), sizeof link - 1);
    if (length <= 0) return Target::unknown;
    link[length] = 0;
    if (starts(link, "/dev/nvidia") || starts(link, "/dev/dri/") || starts(link, "/dev/kfd"))
        return Target::gpu;
    if (starts(link, "socket:")) return Target::socket;
    if (starts(link, "pipe:")) return Target::pipe;
    if (starts(link, "/dev/pts/") || starts(link, "/dev/tty")) return Target::terminal;
    if (starts(link, "/dev/") || link[0] != '/') return Target::other;
    return Target::file;
}

// What a call waits for that waits for any of several descriptors: a GPU if there is one among them
// (its driver waits so for the end of work), else what they all are.
Target target_of_any(pid_t tid, uint64_t descriptors, uint64_t count) {
    Target found = Target::unknown;
    bool first = true;
    for (uint64_t place = 0; place < count && place < kMostPolled; ++place) {
        pollfd each;
        const auto* from = reinterpret_cast<const pollfd*>(descriptors) + place;
        if (!safe_read::copy(&each, from, sizeof each)) return Target::unknown;
        if (each.fd < 0) continue;
        const Target target = target_of(tid, static_cast<uint64_t>(each.fd));
        if (target == Target::gpu) return target;
        if (!first && target != found)
            found = Target::unknown;
        else if (first)
            found = target;
        first = false;
    }
    return found;
}

const char* skip_field(const char* at) {
    while (*at && *at != ' ') ++at;
    while (*at == ' ') ++at;
    return at;
}

const char* skip_fields(const char* at, int count) {
    while (count-- > 0) at = skip_field(at);
    return at;
}

int64_t decimal(const char* at) {
    int64_t value;
    read_decimal(at, &value);
    return value;
}

uint64_t hexadecimal(const char* at) {
    uint64_t value;
    read_hexadecimal(at + (at[0] == '0' && at[1] == 'x' ? 2 : 0), &value);
    return value;
}

bool read_task_file(pid_t tid, const char* name, char* text, size_t size) {
    char path[64];
    char* at = put(path, "/proc/self/task/");
    at = put(at, static_cast<uint64_t>(tid));
    at = put(at, name);
    *at = 0;
    return read_text(path, text, size) > 0;
}

}  // namespace

size_t read_name(pid_t tid, char* to, size_t size) {
    char text[64];
    const char* newline =
        read_task_file(tid, "/comm", text, sizeof text) ? strchr(text, '\n') : nullptr;
    if (!newline) return 0;
    size_t length = static_cast<size_t>(newline - text);
    if (length > size) length = size;
    memcpy(to, text, length);
    return length;
}

int64_t ready_ns(pid_t tid) {
    // "time on a processor, time ready to run, number of times"
    char text[96];
    if (!read_task_file(tid, "/schedstat", text, sizeof text)) return -1;
    return decimal(skip_field(text));
}

bool is_dead(pid_t tid, int* status) {
    char text[1024];
    if (!read_task_file(tid, "/stat", text, sizeof text)) return false;
    const char* name_end = strrchr(text, ')');
    if (!name_end || (name_end[2] != 'Z' && name_end[2] != 'X')) return false;
    if (status) *status = static_cast<int>(decimal(skip_fields(name_end, 50)));
    return true;
}

Call look(pid_t tid) {
    Call found;
    char text[256];
    if (!read_task_file(tid, "/syscall", text, sizeof text)) return found;
    if (starts(text, "running")) {
        found.target = Target::cpu;
        return found;
    }
    // "number arg0 .. arg5 sp pc", or "-1 sp pc" when blocked outside a call (a page fault)
    const bool negative = text[0] == '-';
    const long number = decimal(text + negative);
    const char* arguments = skip_field(text);
    const char* pointers = skip_fields(text, negative ? 1 : 7);
    found.sp = hexadecimal(pointers);
    found.pc = hexadecimal(skip_field(pointers));
    if (negative) return found;
    found.number = static_cast<int32_t>(number);
    if (waits_for_descriptor(number)) found.target = target_of(tid, hexadecimal(arguments));
    if (waits_for_futex(number)) found.futex = hexadecimal(arguments);
    if (waits_for_any_descriptor(number))
        found.target =
            target_of_any(tid, hexadecimal(arguments), hexadecimal(skip_field(arguments)));
    return found;
}

}  // namespace tachograph::blocked

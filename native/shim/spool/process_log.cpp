#include "spool/process_log.h"

#include "base/kernel.h"
#include "base/kernel_text.h"
#include "base/sandbox.h"
#include "spool/fd_broker.h"
#include "spool/layout.h"
#include "spool/memory_file.h"
#include "spool/spool_folder.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tachograph::process_log {
namespace {

// The log in the recording command's memory: a descriptor of that process, and the file that it is.
// Its process id or its descriptor may be another's by the time that we look.
struct InMemory {
    char path[48] = {};
    uint64_t device = 0;
    uint64_t inode = 0;

    bool is(const struct stat& status) const {
        return status.st_dev == device && status.st_ino == inode;
    }
};

struct State {
    char path[560] = {};
    InMemory memory;
    settings::Parent parent;
    int32_t pid = 0;
    int64_t start_ns = 0;
    bool is_forked_child = false;  // that has run no program of its own
};
constinit State g;

struct Arguments {
    int count = 0;
    char* const* texts = nullptr;
};
constinit Arguments g_arguments;

// "PATH:DEVICE:INODE"; a path in /proc has no colon.
InMemory in_memory() {
    InMemory memory;
    const auto [text, length] = settings::options().log;
    const auto* colon = static_cast<const char*>(length > 0 ? memchr(text, ':', length) : nullptr);
    if (!colon || static_cast<size_t>(colon - text) >= sizeof memory.path) return memory;
    char* end = nullptr;
    memory.device = strtoull(colon + 1, &end, 10);
    if (*end != ':') return memory;
    memory.inode = strtoull(end + 1, nullptr, 10);
    memcpy(memory.path, text, static_cast<size_t>(colon - text));
    return memory;
}

enum class Appended { yes, full, out_of_reach };

// The recording command copies the log in memory to the disk and frees it again; where it could not
// for so long that the log is full, the disk has to do. A process with fewer rights than the
// recording command cannot open it, nor one that has no /proc.
Appended append_in_memory(const ProcessRecord& record) {
    struct stat status{};
    if (kernel::call(SYS_newfstatat, AT_FDCWD, kernel::address(g.memory.path),
                     kernel::address(&status), 0) != 0 ||
        !g.memory.is(status))
        return Appended::out_of_reach;
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address(g.memory.path),
                                 O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) return Appended::out_of_reach;
    const bool same =
        kernel::call(SYS_fstat, fd, kernel::address(&status)) == 0 && g.memory.is(status);
    const bool done =
        same && static_cast<uint64_t>(status.st_blocks) * 512 < kLogBound &&
        memory_file::may_reach(static_cast<uint64_t>(status.st_size) + sizeof record) &&
        kernel::call(SYS_write, fd, kernel::address(&record), sizeof record) ==
            static_cast<long>(sizeof record);
    kernel::call(SYS_close, fd);
    return done ? Appended::yes : same ? Appended::full : Appended::out_of_reach;
}

// Beyond the bound one byte says that there was one more. 0 or an errno.
long append_to_file(const ProcessRecord& record) {
    const long fd = spool_folder::open(g.path, O_WRONLY | O_APPEND | O_CREAT);
    if (fd < 0) return -fd;
    struct stat status{};
    const bool known = kernel::call(SYS_fstat, fd, kernel::address(&status)) == 0;
    const auto size = static_cast<uint64_t>(status.st_size);
    const auto kind = static_cast<uint8_t>(record.kind);
    const bool may = memory_file::may_reach(size + sizeof record);
    if (may && known && size < kLogBound)
        kernel::call(SYS_write, fd, kernel::address(&record), sizeof record);
    else if (may)
        kernel::call(SYS_write, fd, kernel::address(&kind), 1);
    kernel::call(SYS_close, fd);
    return may ? 0 : EACCES;
}

void append(const ProcessRecord& record) {
    if (g.memory.path[0] != 0) {
        const Appended appended = append_in_memory(record);
        if (appended == Appended::yes) return;
        if (appended == Appended::out_of_reach && fd_broker::log(record)) return;
    }
    const long failed = append_to_file(record);
    if (fd_broker::may_help(failed)) fd_broker::log(record);
}

ProcessRecord make(ProcessEvent kind) {
    ProcessRecord record{};
    memcpy(record.magic, kProcessMagic, sizeof record.magic);
    record.kind = static_cast<uint32_t>(kind);
    record.pid = kernel::getpid();
    record.parent_pid = static_cast<int32_t>(kernel::call(SYS_getppid));
    record.status = kStatusUnknown;
    record.time_ns = kernel::monotonic_ns();
    record.first = record.second = record.third = -1;
    return record;
}

size_t put(ProcessRecord* record, size_t at, const char* text, size_t length) {
    const size_t room = sizeof record->text - at;
    if (length > room) length = room;
    memcpy(record->text + at, text, length);
    return length;
}

void list(ProcessRecord* record) {
    record->first = g.parent.pid;
    record->second = g.parent.time_ns;
    g.pid = record->pid;
    g.start_ns = record->time_ns;
    g.parent = {g.pid, g.start_ns};
    settings::set_parent_of_children(g.parent);
    append(*record);
}

// The largest resident set of this program. getrusage's is of the process, and a child of vfork has
// its parent's in it; in a forked one both are the same.
int64_t most_resident(const rusage& usage) {
    if (g.is_forked_child && usage.ru_maxrss > 0) return int64_t{usage.ru_maxrss} * 1024;
    char text[2048];
    read_text("/proc/self/status", text, sizeof text);
    const char* at = strstr(text, "VmHWM:");
    if (!at) return -1;
    at += strcspn(at, "0123456789\n");
    int64_t kilobytes;
    return read_decimal(at, &kilobytes) > at ? kilobytes * 1024 : -1;
}

int64_t to_ns(const timeval& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<int64_t>(time.tv_usec) * 1'000;
}

}  // namespace

void started_with(int count, char* const* arguments) { g_arguments = {count, arguments}; }

void open(const char* spool, const settings::Parent& parent) {
    const int length = snprintf(g.path, sizeof g.path, "%s/processes.log", spool);
    if (length < 0 || static_cast<size_t>(length) >= sizeof g.path) return;
    g.parent = parent;
    g.memory = in_memory();
    ProcessRecord record = make(ProcessEvent::start);
    char executable[sizeof record.text];
    const long got = kernel::call(SYS_readlinkat, AT_FDCWD, kernel::address("/proc/self/exe"),
                                  kernel::address(executable), sizeof executable);
    if (got > 0)
        record.executable_length =
            static_cast<uint32_t>(put(&record, 0, executable, static_cast<size_t>(got)));
    size_t at = record.executable_length;
    const auto [count, arguments] = g_arguments;
    for (int i = 0; i < count && arguments[i] && at < sizeof record.text; ++i) {
        if (i > 0) at += put(&record, at, "", 1);
        at += put(&record, at, arguments[i], strlen(arguments[i]));
    }
    record.arguments_length = static_cast<uint32_t>(at) - record.executable_length;
    list(&record);
}

void close() { g = State{}; }

void forked() {
    if (g.path[0] == 0) return;
    g.is_forked_child = true;
    ProcessRecord record = make(ProcessEvent::fork);
    list(&record);
}

void replaced() {
    if (listed()) append(make(ProcessEvent::exec));
}

void ended(int status) {
    if (!listed()) return;
    ProcessRecord record = make(ProcessEvent::end);
    record.status = status;
    rusage usage{};
    if (kernel::call(SYS_getrusage, RUSAGE_SELF, kernel::address(&usage)) == 0) {
        record.first = to_ns(usage.ru_utime);
        record.second = to_ns(usage.ru_stime);
    }
    record.third = most_resident(usage);
    append(record);
    g.pid = 0;
}

void reaped(const ChildEnd& end) {
    ProcessRecord record = make(ProcessEvent::reaped);
    record.pid = end.pid;
    record.parent_pid = kernel::getpid();
    record.status = end.status;
    record.time_ns = end.time_ns;
    record.first = end.user_ns;
    record.second = end.system_ns;
    record.third = end.max_resident_bytes;
    append(record);
}

bool reachable() { return g.path[0] != 0; }

void refused(const char* reason) {
    if (!listed()) return;
    ProcessRecord record = make(ProcessEvent::refused);
    record.status = static_cast<int32_t>(Refusal::failed);
    record.arguments_length = static_cast<uint32_t>(put(&record, 0, reason, strlen(reason)));
    append(record);
}

bool listed() { return g.pid != 0 && !sandbox::entered() && g.pid == kernel::getpid(); }

}  // namespace tachograph::process_log

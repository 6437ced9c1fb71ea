// What takes the status of a child. Its parent alone is told how a child that was killed has ended,
// and the kernel forgets what the child used once its status is taken. So it is looked at before: a
// first call waits and takes nothing (WNOWAIT), a second one takes the status of that very child.
#include "base/kernel.h"
#include "hooks/interposed.h"
#include "process/helper.h"
#include "spool/child_ends.h"
#include "spool/layout.h"
#include "spool/process_log.h"
#include "spool/spool.h"
#include "stacks/recorder.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <cerrno>
#include <climits>
#include <csignal>

namespace tachograph {
namespace {

using process_log::ChildEnd;

struct Real {
    pid_t (*wait4)(pid_t, int*, int, rusage*) = nullptr;
    int (*waitid)(idtype_t, id_t, siginfo_t*, int) = nullptr;
};
constinit Real g;

#define TG_REAL(name) next_function(&g.name, #name)

__attribute__((constructor)) void resolve() {
    TG_REAL(wait4);
    TG_REAL(waitid);
}

// What both calls understand beside WEXITED and WNOWAIT.
constexpr int kOptions = WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WALL | __WCLONE;
constexpr int kMostTries = 64;
constexpr int64_t kMicrosecond = 1'000;
constexpr int64_t kSlackNs = 20 * kMicrosecond;  // far less than any child takes

// Of a process clock of another process, see clock_getcpuclockid in the kernel's posix-timers.h.
enum Clock : clockid_t { kUserAndSystem = 0, kUser = 1, kExact = 2 };

int64_t read(pid_t pid, Clock clock) {
    return kernel::clock_ns(static_cast<clockid_t>((~pid << 3) | clock));
}

int64_t to_ns(const timeval& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<int64_t>(time.tv_usec) * kMicrosecond;
}

int64_t own_most_resident() {
    rusage usage{};
    return kernel::call(SYS_getrusage, RUSAGE_SELF, kernel::address(&usage)) == 0 ? usage.ru_maxrss
                                                                                  : LONG_MAX;
}

bool is_end(const siginfo_t& info) {
    return info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
}

// The kernel knows the child's clocks as long as its status is not taken. Its times in user mode
// and in the kernel are counted in ticks; their sum is exact.
ChildEnd look(const siginfo_t& info) {
    ChildEnd end{};
    end.pid = info.si_pid;
    end.status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    end.time_ns = kernel::monotonic_ns();
    end.user_ns = end.system_ns = end.max_resident_bytes = -1;
    const int64_t total = read(info.si_pid, kExact);
    const int64_t ticks = read(info.si_pid, kUserAndSystem);
    const int64_t user = read(info.si_pid, kUser);
    if (total < 0 || ticks < user || user < 0) return end;
    end.user_ns =
        ticks == 0 ? total
                   : static_cast<int64_t>(static_cast<double>(total) * static_cast<double>(user) /
                                          static_cast<double>(ticks));
    end.system_ns = total - end.user_ns;
    return end;
}

// What the kernel says with the status has the children that the child waited for in it, and, where
// it began as a copy of its parent, or on its parent's memory, what that had.
void look_at_memory(const rusage& usage, ChildEnd* end) {
    const int64_t with_children = to_ns(usage.ru_utime) + to_ns(usage.ru_stime);
    if (end->user_ns < 0 || with_children > end->user_ns + end->system_ns + kSlackNs) return;
    if (usage.ru_maxrss > own_most_resident()) end->max_resident_bytes = usage.ru_maxrss * 1024;
}

void note(const ChildEnd& end) {
    const AtWork at_work;
    const bool helped = live() && helper::is_there();
    if (!child_ends::note(end, helped)) {
        if (live()) spool::count(Loss::child_ends_dropped);
    } else if (helped) {
        helper::wake();
    }
}

// `take(child)` takes the status of a child that was looked at: its pid, 0 if another thread or a
// signal handler was faster, or a negative errno; `once` does all in one call.
template <typename Take, typename Once>
pid_t wait_for(idtype_t kind, id_t id, int options, const rusage& usage, siginfo_t* found,
               Take take, Once once) {
    if (!child_ends::wanted()) return once();
    const int error_before = errno;
    for (int tries = 0; tries < kMostTries; ++tries) {
        siginfo_t info{};
        if (TG_REAL(waitid)(kind, id, &info, (options & kOptions) | WEXITED | WNOWAIT) != 0) {
            // An older kernel, or a filter of system calls, may know the other call only.
            if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return -1;
            errno = error_before;
            return once();
        }
        *found = info;
        if (info.si_pid == 0) return 0;
        const bool ends = is_end(info);
        ChildEnd end{};
        if (ends) end = look(info);
        const long taken = take(info.si_pid);
        if (taken == 0 || taken == -ECHILD) continue;
        if (taken < 0) {
            errno = static_cast<int>(-taken);
            return -1;
        }
        if (ends) {
            look_at_memory(usage, &end);
            note(end);
        }
        return static_cast<pid_t>(taken);
    }
    return once();
}

pid_t wait_four(pid_t pid, int* status, int options, rusage* usage) {
    const auto once = [=] { return TG_REAL(wait4)(pid, status, options, usage); };
    if (pid == INT_MIN || (options & ~kOptions) != 0 || !child_ends::wanted()) return once();
    const idtype_t kind = pid == -1 ? P_ALL : pid > 0 ? P_PID : P_PGID;
    const long group = pid == 0 ? kernel::call(SYS_getpgid, 0) : -static_cast<long>(pid);
    const auto id = static_cast<id_t>(kind == P_PID ? pid : kind == P_PGID ? group : 0);
    rusage own{};
    siginfo_t info{};
    rusage* to = usage ? usage : &own;
    const auto take = [=](pid_t child) {
        return kernel::call(SYS_wait4, child, kernel::address(status), options | WNOHANG,
                            kernel::address(to));
    };
    return wait_for(kind, id, options, *to, &info, take, once);
}

}  // namespace
}  // namespace tachograph

using namespace tachograph;

TG_EXPORT pid_t wait4(pid_t pid, int* status, int options, rusage* usage) {
    return wait_four(pid, status, options, usage);
}
TG_EXPORT pid_t wait3(int* status, int options, rusage* usage) {
    return wait_four(-1, status, options, usage);
}
TG_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
    return wait_four(pid, status, options, nullptr);
}
TG_EXPORT pid_t wait(int* status) { return wait_four(-1, status, 0, nullptr); }

TG_EXPORT int waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
    const auto once = [=] { return TG_REAL(waitid)(kind, id, info, options); };
    if ((options & WEXITED) == 0 || (options & ~(kOptions | WEXITED)) != 0) return once();
    rusage usage{};
    siginfo_t found{};
    const auto take = [&, kind, id, options](pid_t child) -> long {
        siginfo_t taken{};
        const long result =
            kernel::call(SYS_waitid, P_PID, child, kernel::address(info ? info : &taken),
                         options | WNOHANG, kernel::address(&usage));
        if (result != 0) return result;
        return info ? info->si_pid : taken.si_pid;
    };
    const pid_t result = wait_for(kind, id, options, usage, &found, take, once);
    if (result == 0 && info) *info = found;
    return result < 0 ? -1 : 0;
}

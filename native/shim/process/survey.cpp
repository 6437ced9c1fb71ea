#include "process/survey.h"

#include "base/kernel.h"
#include "base/kernel_text.h"
#include "stacks/recorder.h"
#include "stacks/sources.h"
#include "stacks/threads.h"
#include "waits/blocked.h"

#include <fcntl.h>
#include <atomic>
#include <cstring>

namespace tachograph::survey {
namespace {

// Unknown threads of one look at /proc/self/task. One that is still unknown at the next look did
// not come through pthread_create; before that it may just be on its way.
struct Unknown {
    pid_t tids[256] = {};
    uint32_t count = 0;

    void add(pid_t tid) {
        if (count < sizeof tids / sizeof tids[0]) tids[count++] = tid;
    }
    bool has(pid_t tid) const {
        for (uint32_t i = 0; i < count; ++i)
            if (tids[i] == tid) return true;
        return false;
    }
};

struct State {
    Unknown last;
    std::atomic<pid_t> left_out{0};
};
constinit State g;

// The wait sampler does this where there is one.
void end_gone() {
    const int64_t now = kernel::monotonic_ns();
    for (uint32_t index = 0; index < threads::high_water(); ++index) {
        threads::Thread* thread = threads::at(index);
        const pid_t tid = thread->tid.load(std::memory_order_acquire);
        if (tid > 0 && kernel::clock_ns(kernel::thread_clock(tid)) < 0)
            threads::end(thread, tid, now);
    }
}

}  // namespace

bool look(bool at_once, pid_t helper) {
    const long fd = kernel::call(SYS_openat, AT_FDCWD, kernel::address("/proc/self/task"),
                                 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return true;
    threads::forget_missed_that_ended();
    const pid_t pid = kernel::getpid();
    uint32_t others = 0;
    bool main = false;
    Unknown now;
    alignas(8) char buffer[4096];
    for (;;) {
        const long got = kernel::call(SYS_getdents64, fd, kernel::address(buffer), sizeof buffer);
        if (got <= 0) break;
        for (long at = 0; at < got;) {
            unsigned short length;
            memcpy(&length, buffer + at + 16, sizeof length);  // struct linux_dirent64
            int64_t name;
            read_decimal(buffer + at + 19, &name);
            const auto tid = static_cast<pid_t>(name);
            at += length;
            if (tid <= 0 || tid == helper || tid == left_out()) continue;
            ++others;
            main = main || tid == pid;
            if (threads::find(tid)) continue;
            if (!at_once && !g.last.has(tid)) {
                now.add(tid);
                continue;
            }
            if (threads::Thread* thread = threads::add(tid, tid == pid, kernel::monotonic_ns()))
                sources::watch(thread);
        }
    }
    kernel::call(SYS_close, fd);
    g.last = now;
    if (!recorder().waits) end_gone();
    // The first thread stays in the list until the process is gone.
    return others > (main ? 1 : 0) || (main && !blocked::is_dead(pid));
}

void leave_out(pid_t tid) { g.left_out.store(tid, std::memory_order_relaxed); }

pid_t left_out() { return g.left_out.load(std::memory_order_relaxed); }

void forget() { g.last = {}; }

}  // namespace tachograph::survey

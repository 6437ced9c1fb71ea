#include "orphan.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace tachograph {
namespace {

constexpr size_t kStack = 64 * 1024;
constexpr int kFirst = 3;

// In memory that the three processes share for a moment; the first waits for the second, and that
// for the third.
struct Start {
    char* const* arguments;
    char* const* environment;
    const int* descriptors;
    int count;
    char* stack;
    int pid = 0;
    int error = 0;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> found;
    found.reserve(texts.size() + 1);
    for (const std::string& text : texts) found.push_back(const_cast<char*>(text.c_str()));
    found.push_back(nullptr);
    return found;
}

// Above all numbers that are wanted first: one may be in the place of another.
bool take_descriptors(const Start& start) {
    int copies[16];
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return false;
    for (int i = 0; i < start.count; ++i) {
        copies[i] = fcntl(start.descriptors[i], F_DUPFD, kFirst + start.count + 1);
        if (copies[i] < 0) return false;
    }
    const int high = fcntl(nothing, F_DUPFD, kFirst + start.count + 1);
    for (int fd = 0; fd < kFirst; ++fd)
        if (high < 0 || dup2(high, fd) < 0) return false;
    for (int i = 0; i < start.count; ++i)
        if (dup2(copies[i], kFirst + i) < 0) return false;
    const auto rest = static_cast<unsigned>(kFirst + start.count);
    if (syscall(SYS_close_range, rest, ~0u, 0) == 0) return true;
    for (int fd = static_cast<int>(rest); fd < 65536; ++fd) close(fd);  // before Linux 5.9
    return true;
}

int run(void* argument) {
    auto* start = static_cast<Start*>(argument);
    setsid();
    // No handler of the program's may run here, where all memory is the program's.
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
    sigset_t none;
    sigemptyset(&none);
    if (take_descriptors(*start)) {
        sigprocmask(SIG_SETMASK, &none, nullptr);
        syscall(SYS_execve, start->arguments[0], start->arguments, start->environment);
    }
    start->error = errno;
    syscall(SYS_exit_group, 127);
    __builtin_unreachable();
}

int begin(void* argument) {
    auto* start = static_cast<Start*>(argument);
    start->pid = clone(run, start->stack + kStack, CLONE_VM | CLONE_VFORK | SIGCHLD, start);
    if (start->pid < 0) start->error = errno;
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}

}  // namespace

int start_orphan(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment, const std::vector<int>& descriptors) {
    if (arguments.empty() || descriptors.size() > 16) throw std::runtime_error("nothing to start");
    const std::vector<char*> texts = pointers(arguments);
    const std::vector<char*> variables = pointers(environment);
    std::vector<char> stacks(2 * kStack + 16);
    char* first = stacks.data();
    first += -reinterpret_cast<uintptr_t>(first) & 15u;
    Start start{texts.data(), variables.data(), descriptors.data(),
                static_cast<int>(descriptors.size()), first + kStack};
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // Without a signal at its end it is seen by no wait() but the next one.
    const int between = clone(begin, first + kStack, CLONE_VM | CLONE_VFORK, &start);
    if (between < 0) start.error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    while (between > 0 && waitpid(between, nullptr, __WALL) < 0 && errno == EINTR) {
    }
    if (start.error != 0)
        throw std::runtime_error(std::string("cannot start ") + arguments[0] + ": " +
                                 strerror(start.error));
    return start.pid;
}

}  // namespace tachograph

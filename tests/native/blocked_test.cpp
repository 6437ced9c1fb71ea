// What the kernel says that a thread is blocked in.
#include "waits/blocked.h"
#include "base/kernel.h"
#include "check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

using namespace tachograph;

namespace {

void need_proc_syscall() {
    if (access("/proc/self/syscall", R_OK) == 0) return;
    puts("this kernel has no /proc/PID/syscall");
    exit(77);
}

// Runs `wait` in a thread until it is blocked as expected, then `wake`.
template <typename Wait, typename Wake>
blocked::Call check_blocked(long number, Target target, Wait wait, Wake wake) {
    need_proc_syscall();
    std::atomic<pid_t> tid{0};
    std::atomic<uint64_t> stack{0};
    std::thread thread([&] {
        stack.store(reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
        tid.store(kernel::gettid());
        wait();
    });
    blocked::Call call;
    for (int tries = 0; tries < 5000; ++tries, usleep(1000)) {
        if (tid.load() == 0) continue;
        call = blocked::look(tid.load());
        if (call.number == number) break;
    }
    wake();
    thread.join();
    CHECK(call.number == number);
    CHECK(call.target == target);
    Dl_info image;
    CHECK(dladdr(reinterpret_cast<void*>(call.pc), &image) != 0);
    CHECK(call.sp < stack.load() && stack.load() - call.sp < 64 * 1024);
    return call;
}

void read_byte(int fd) {
    char byte;
    CHECK(read(fd, &byte, 1) == 1);
}

void write_byte(int fd) { CHECK(write(fd, "x", 1) == 1); }

}  // namespace

TEST(blocked_in_a_pipe) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    check_blocked(
        SYS_read, Target::pipe, [&] { read_byte(ends[0]); }, [&] { write_byte(ends[1]); });
}

TEST(blocked_in_a_socket) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    char byte;
    check_blocked(
        SYS_recvfrom, Target::socket, [&] { CHECK(recv(ends[0], &byte, 1, 0) == 1); },
        [&] { write_byte(ends[1]); });
    // A descriptor of more than one digit.
    const int high = fcntl(ends[0], F_DUPFD, 217);
    CHECK(high >= 217);
    check_blocked(SYS_read, Target::socket, [&] { read_byte(high); }, [&] { write_byte(ends[1]); });
}

TEST(blocked_in_a_file) {
    char path[600];
    snprintf(path, sizeof path, "%s/lock", tests::folder);
    const int held = open(path, O_RDWR | O_CREAT, 0600);
    const int wanted = open(path, O_RDWR);
    CHECK(held >= 0 && wanted >= 0 && flock(held, LOCK_EX) == 0);
    check_blocked(
        SYS_flock, Target::file, [&] { CHECK(flock(wanted, LOCK_EX) == 0); },
        [&] { CHECK(flock(held, LOCK_UN) == 0); });
}

TEST(blocked_in_a_terminal) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        puts("no pseudo-terminals here");
        exit(77);
    }
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(terminal >= 0);
    check_blocked(
        SYS_read, Target::terminal, [&] { read_byte(terminal); },
        [&] { CHECK(write(master, "x\n", 2) == 2); });
}

TEST(blocked_in_something_else) {
    const int event = eventfd(0, 0);
    const uint64_t one = 1;
    uint64_t value;
    check_blocked(
        SYS_read, Target::other, [&] { CHECK(read(event, &value, 8) == 8); },
        [&] { CHECK(write(event, &one, 8) == 8); });
}

TEST(blocked_in_no_descriptor) {
    check_blocked(SYS_clock_nanosleep, Target::unknown, [] { usleep(300'000); }, [] {});
    std::mutex mutex;
    mutex.lock();
    const auto lock = [&] { const std::lock_guard<std::mutex> hold(mutex); };
    const auto waited = check_blocked(SYS_futex, Target::unknown, lock, [&] { mutex.unlock(); });
    CHECK(waited.futex - reinterpret_cast<uintptr_t>(&mutex) < sizeof mutex);
}

TEST(blocked_not_at_all) {
    need_proc_syscall();
    const blocked::Call self = blocked::look(kernel::gettid());
    // Looking, it is in a call itself, or running: never blocked on a descriptor of the program's.
    CHECK(self.target == Target::cpu || self.number == SYS_read);
    std::atomic<bool> done{false};
    std::atomic<pid_t> tid{0};
    std::thread busy([&] {
        tid.store(kernel::gettid());
        while (!done.load()) {
        }
    });
    while (tid.load() == 0) usleep(100);
    int on_cpu = 0;  // waiting for a processor counts; a page fault may come in between
    for (int i = 0; i < 100; ++i) on_cpu += blocked::look(tid.load()).target == Target::cpu;
    CHECK(on_cpu >= 80);
    done.store(true);
    busy.join();
    // A thread that has been joined is still in /proc for a moment.
    for (int i = 0; i < 10'000 && blocked::look(tid.load()).number != -1; ++i) usleep(1000);
    const blocked::Call gone = blocked::look(tid.load());
    CHECK(gone.number == -1 && gone.pc == 0 && gone.target == Target::unknown);
    CHECK(blocked::look(0x3FFF'0000).number == -1);
}

TEST(blocked_thread_names) {
    char name[16];
    CHECK(prctl(PR_SET_NAME, "a name of sixteen") == 0);
    CHECK(blocked::read_name(kernel::gettid(), name, sizeof name) == 15);
    CHECK(memcmp(name, "a name of sixte", 15) == 0);
    CHECK(blocked::read_name(kernel::gettid(), name, 4) == 4);
    CHECK(prctl(PR_SET_NAME, "") == 0);
    CHECK(blocked::read_name(kernel::gettid(), name, sizeof name) == 0);
    CHECK(blocked::read_name(0x3FFF'0000, name, sizeof name) == 0);
}

// Handlers of SIGSEGV and SIGBUS before the program's own, which does not see them.
#include "base/fault.h"
#include "base/pages.h"
#include "base/safe_read.h"
#include "check.h"
#include "stacks/own_stack.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <initializer_list>

using namespace tachograph;

namespace {

volatile sig_atomic_t g_calls = 0;
volatile sig_atomic_t g_signal = 0;
volatile sig_atomic_t g_code = 0;
volatile uintptr_t g_address = 0;
sigjmp_buf g_back;

void count_only(int signal) {
    g_calls = g_calls + 1;
    g_signal = signal;
}

void note(int signal, siginfo_t* info, void* context) {
    count_only(signal);
    g_code = info->si_code;
    g_address = reinterpret_cast<uintptr_t>(info->si_addr);
    CHECK(context);
}

void note_and_jump(int signal, siginfo_t* info, void* context) {
    note(signal, info, context);
    siglongjmp(g_back, 1);
}

void jump(int signal) {
    count_only(signal);
    siglongjmp(g_back, 1);
}

// What the program's sigaction is while we record (interpose.cpp sends it here).
int program_sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
    if (fault::fronts(signal)) return fault::set_program_action(signal, action, old);
    return sigaction(signal, action, old);
}

void set(int signal, void (*handler)(int), int flags = 0) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    CHECK(program_sigaction(signal, &action, nullptr) == 0);
}

void set(int signal, void (*handler)(int, siginfo_t*, void*), int flags = 0) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = flags | SA_SIGINFO;
    CHECK(program_sigaction(signal, &action, nullptr) == 0);
}

volatile char* const kNowhere = reinterpret_cast<volatile char*>(0x10010);

__attribute__((noinline, no_sanitize("address", "undefined", "thread"))) void touch(
    volatile char* where) {
    *where = 1;
}

void bus_error() {
    const int fd = memfd_create("short", 0);
    CHECK(fd >= 0);
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED);
    touch(static_cast<volatile char*>(page));
}

bool guarded_read_works() {
    uint64_t value = 0;
    return !safe_read::copy(&value, const_cast<char*>(kNowhere), sizeof value);
}

// Whether a fault in `body` was left by a handler that jumps.
template <typename Body>
__attribute__((noinline)) bool jumps_out(Body body) {
    if (sigsetjmp(g_back, 1) != 0) return true;
    body();
    return false;
}

template <typename Body>
int status_of(Body body) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) CHECK(errno == EINTR);
    return status;
}

template <typename Body>
void check_dies_by(int signal, Body body) {
    const int status = status_of(body);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
}

template <typename Body>
void check_survives(Body body) {
    const int status = status_of(body);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// In a child with our handlers in front, the program's having been set before or after.
template <typename Prepare, typename Body>
void before_and_after(Prepare prepare, Body body) {
    for (const bool before : {true, false})
        check_survives([=] {
            if (before) prepare();
            fault::install();
            if (!before) prepare();
            CHECK(guarded_read_works());
            body();
            CHECK(guarded_read_works());
            CHECK(fault::verify());
        });
}

template <typename Prepare, typename Body>
void dies_before_and_after(int signal, Prepare prepare, Body body) {
    for (const bool before : {true, false})
        check_dies_by(signal, [=] {
            if (before) prepare();
            fault::install();
            if (!before) prepare();
            CHECK(guarded_read_works());
            body();
        });
}

void nothing() {}

}  // namespace

TEST(fault_default_is_death_by_the_signal) {
    dies_before_and_after(SIGSEGV, nothing, [] { touch(kNowhere); });
    dies_before_and_after(SIGSEGV, nothing, [] { raise(SIGSEGV); });
    dies_before_and_after(SIGSEGV, nothing, [] { kill(getpid(), SIGSEGV); });
    dies_before_and_after(SIGBUS, nothing, bus_error);
    dies_before_and_after(SIGBUS, nothing, [] { raise(SIGBUS); });
    // A guarded read that worked before changes nothing of that.
    dies_before_and_after(SIGSEGV, [] { guarded_read_works(); }, [] { touch(kNowhere); });
}

#if !defined(__SANITIZE_THREAD__)  // it has us stay on the program's stack
// Within a stack of ours, so far below where it is called.
void touch_below(void* kilobytes) {
    volatile char here = 0;
    touch(&here - *static_cast<const size_t*>(kilobytes) * 1024);
}

TEST(fault_of_what_needs_more_than_a_stack_of_ours) {
    CHECK(own_stack::open());
    const auto first = [](size_t kilobytes) { CHECK(own_stack::run(touch_below, &kilobytes)); };
    const auto second = [](void* kilobytes) { CHECK(own_stack::run(touch_below, kilobytes)); };
    const size_t room = pages::round_up(60 * 1024) / 1024;
    for (size_t kilobytes : {room - 4, room, room + 2}) {
        const int signal = kilobytes < room ? 0 : SIGSEGV;
        CHECK(WTERMSIG(status_of([=] { first(kilobytes); })) == signal);
        CHECK(WTERMSIG(status_of([&] { own_stack::run(second, &kilobytes); })) == signal);
    }
}
#endif

TEST(fault_ignored) {
    const auto ignore = [] { set(SIGSEGV, SIG_IGN); };
    before_and_after(ignore, [] { CHECK(raise(SIGSEGV) == 0); });
    // A true fault cannot be ignored.
    dies_before_and_after(SIGSEGV, ignore, [] { touch(kNowhere); });
}

TEST(fault_handler_with_siginfo) {
    before_and_after([] { set(SIGSEGV, note_and_jump); },
                     [] {
                         CHECK(jumps_out([] { touch(kNowhere); }));
                         CHECK(g_calls == 1 && g_signal == SIGSEGV && g_code == SEGV_MAPERR);
                         CHECK(g_address == reinterpret_cast<uintptr_t>(kNowhere));
                     });
    before_and_after([] { set(SIGBUS, note_and_jump); },
                     [] {
                         CHECK(jumps_out(bus_error));
                         CHECK(g_calls == 1 && g_signal == SIGBUS && g_code == BUS_ADRERR);
                     });
    before_and_after([] { set(SIGSEGV, note); },
                     [] {
                         raise(SIGSEGV);
                         CHECK(g_calls == 1 && g_code == SI_TKILL);
                         kill(getpid(), SIGSEGV);
                         CHECK(g_calls == 2 && g_code == SI_USER);
                     });
}

TEST(fault_handler_that_jumps_away) {
    before_and_after([] { set(SIGSEGV, jump); },
                     [] {
                         for (int i = 1; i <= 50; ++i) {
                             CHECK(jumps_out([] { touch(kNowhere); }));
                             CHECK(g_calls == i && guarded_read_works());
                         }
                     });
}

TEST(fault_handler_once) {
    const auto once = [] { set(SIGSEGV, count_only, static_cast<int>(SA_RESETHAND)); };
    before_and_after(once, [] {
        raise(SIGSEGV);
        CHECK(g_calls == 1);
        struct sigaction now{};
        CHECK(program_sigaction(SIGSEGV, nullptr, &now) == 0);
        CHECK(now.sa_handler == SIG_DFL);
    });
    dies_before_and_after(SIGSEGV, once, [] {
        raise(SIGSEGV);
        raise(SIGSEGV);
    });
    dies_before_and_after(
        SIGSEGV, [] { set(SIGSEGV, jump, static_cast<int>(SA_RESETHAND)); },
        [] {
            CHECK(jumps_out([] { touch(kNowhere); }));
            CHECK(g_calls == 1);
            touch(kNowhere);
        });
}

// The thread sanitizer runs handlers with masks of its own.
#if !TG_THREAD_SANITIZER
TEST(fault_masks_and_nesting) {
    // Blocked while its handler runs, unless SA_NODEFER; sa_mask holds as well.
    const auto raising = +[](int signal) {
        count_only(signal);
        if (g_calls == 1) raise(signal);
        if (g_calls == 1) g_code = 1;  // it waited
        sigset_t mask;
        CHECK(sigprocmask(SIG_BLOCK, nullptr, &mask) == 0);
        g_address = sigismember(&mask, SIGUSR1) == 1;
    };
    before_and_after([=] { set(SIGSEGV, raising); },
                     [] {
                         raise(SIGSEGV);
                         CHECK(g_calls == 2 && g_code == 1 && g_address == 0);
                     });
    before_and_after([=] { set(SIGSEGV, raising, SA_NODEFER); },
                     [] {
                         raise(SIGSEGV);
                         CHECK(g_calls == 2 && g_code == 0);
                     });
    before_and_after(
        [=] {
            struct sigaction action{};
            action.sa_handler = raising;
            sigaddset(&action.sa_mask, SIGUSR1);
            CHECK(program_sigaction(SIGSEGV, &action, nullptr) == 0);
        },
        [] {
            raise(SIGSEGV);
            CHECK(g_address == 1);
        });
}
#endif

TEST(fault_alternate_stack) {
    static char stack[64 * 1024];
    const auto prepare = [] {
        const stack_t alternate{stack, 0, sizeof stack};
        CHECK(sigaltstack(&alternate, nullptr) == 0);
        set(
            SIGSEGV,
            +[](int) {
                char here = 0;
                g_address = reinterpret_cast<uintptr_t>(&here);
                siglongjmp(g_back, 1);
            },
            SA_ONSTACK);
    };
    // Under the address sanitizer locals may lie on a fake stack.
#ifndef __SANITIZE_ADDRESS__
    before_and_after(prepare, [] {
        CHECK(jumps_out([] { touch(kNowhere); }));
        CHECK(g_address - reinterpret_cast<uintptr_t>(stack) < sizeof stack);
    });
#else
    before_and_after(prepare, nothing);
#endif
}

TEST(fault_program_sees_its_own_actions) {
    set(SIGSEGV, note, SA_NODEFER);
    fault::install();
    struct sigaction old{};
    CHECK(program_sigaction(SIGSEGV, nullptr, &old) == 0);
    CHECK(old.sa_sigaction == note && (old.sa_flags & SA_SIGINFO) && (old.sa_flags & SA_NODEFER));
    struct sigaction action{};
    action.sa_handler = count_only;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(program_sigaction(SIGSEGV, &action, &old) == 0 && old.sa_sigaction == note);
    // The old one may be asked for in the place of the new one.
    CHECK(program_sigaction(SIGSEGV, &action, &action) == 0);
    CHECK(action.sa_handler == count_only && sigismember(&action.sa_mask, SIGUSR2) == 1);
    CHECK(!fault::fronts(SIGILL) && fault::fronts(SIGBUS));
    // Taken away again, all is the program's (in a forked child).
    fault::remove();
    CHECK(!fault::fronts(SIGSEGV));
    CHECK(sigaction(SIGSEGV, nullptr, &old) == 0 && old.sa_handler == count_only);
    CHECK(sigaction(SIGBUS, nullptr, &old) == 0 && old.sa_handler == SIG_DFL);
}

// A child that shares our memory (vfork) has handlers of its own: what it sets is not the
// program's.
TEST(fault_not_in_a_vfork_child) {
    set(SIGSEGV, note);
    fault::install();
    const pid_t child = vfork();
    if (child == 0) {
        struct sigaction standard{};
        standard.sa_handler = SIG_DFL;
        _exit(program_sigaction(SIGSEGV, &standard, nullptr) == 0 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct sigaction now{};
    CHECK(program_sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_sigaction == note);
    raise(SIGSEGV);
    CHECK(g_calls == 1);
    fault::remove();
}

TEST(fault_replaced_behind_our_back) {
    fault::install();
    CHECK(fault::verify());
    struct sigaction action{};
    action.sa_handler = count_only;
    CHECK(sigaction(SIGBUS, &action, nullptr) == 0);
    CHECK(!fault::verify() && !fault::trusted());
    safe_read::use_kernel(!fault::trusted());
    CHECK(guarded_read_works());
    fault::remove();
}

#if !defined(__SANITIZE_THREAD__)  // there, nothing is run on stacks of ours
// What needs more than a stack of ours has ends there, and writes into no other.
TEST(fault_behind_a_stack_of_ours) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        CHECK(own_stack::open());
        own_stack::run(
            [](void*) {
                volatile char room[63 * 1024];
                for (size_t i = sizeof room; i > 0; --i) room[i - 1] = 1;
            },
            nullptr);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSEGV);
}
#endif

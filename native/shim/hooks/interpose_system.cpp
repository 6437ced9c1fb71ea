// system(3). glibc's own starts the shell through a function that cannot be interposed, so it is
// done here as there: the shell is started with our variables, all else is as POSIX says.
#include "hooks/interposed.h"
#include "spool/settings.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace tachograph {
namespace {

constexpr int kNotStarted = 127 << 8;

struct State {
    int (*system)(const char*) = nullptr;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int running = 0;  // calls; the first saves the dispositions, the last puts them back
    struct sigaction interrupt{};
    struct sigaction quit{};
};
constinit State g;

// While the shell runs, its caller ignores what the terminal sends to both.
class Ignoring {
  public:
    Ignoring() {
        struct sigaction ignore{};
        ignore.sa_handler = SIG_IGN;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation_);
        pthread_mutex_lock(&g.lock);
        if (g.running++ == 0) {
            ::sigaction(SIGINT, &ignore, &g.interrupt);
            ::sigaction(SIGQUIT, &ignore, &g.quit);
        }
        sigemptyset(&defaults);
        if (g.interrupt.sa_handler != SIG_IGN) sigaddset(&defaults, SIGINT);
        if (g.quit.sa_handler != SIG_IGN) sigaddset(&defaults, SIGQUIT);
        pthread_mutex_unlock(&g.lock);
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        ::sigprocmask(SIG_BLOCK, &child, &mask);
    }
    ~Ignoring() {
        pthread_mutex_lock(&g.lock);
        if (--g.running == 0) {
            ::sigaction(SIGINT, &g.interrupt, nullptr);
            ::sigaction(SIGQUIT, &g.quit, nullptr);
        }
        pthread_mutex_unlock(&g.lock);
        ::sigprocmask(SIG_SETMASK, &mask, nullptr);
        pthread_setcancelstate(cancellation_, nullptr);
    }
    Ignoring(const Ignoring&) = delete;
    Ignoring& operator=(const Ignoring&) = delete;

    sigset_t mask;      // of the caller, and so of the shell
    sigset_t defaults;  // what the shell does not ignore

  private:
    int cancellation_ = 0;
};

int start_shell(const char* command, const Ignoring& state, pid_t* pid) {
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &state.mask);
    posix_spawnattr_setsigdefault(&attributes, &state.defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    const char* plain[] = {"sh", "-c", command, nullptr};
    const char* dashed[] = {"sh", "-c", "--", command, nullptr};
    const char** arguments = shell_takes_dashes() ? dashed : plain;
    const int failed =
        ::posix_spawn(pid, "/bin/sh", nullptr, &attributes, const_cast<char**>(arguments), environ);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

int run(const char* command) {
    int status = -1;
    int error = errno;
    {
        const Ignoring state;
        pid_t pid = 0;
        if (const int failed = start_shell(command, state, &pid); failed != 0) {
            status = kNotStarted;
            error = failed;
        } else {
            pid_t ended = 0;
            do ended = waitpid(pid, &status, 0);
            while (ended < 0 && errno == EINTR);
            if (ended != pid) {
                status = -1;
                error = errno;
            }
        }
    }
    errno = error;
    return status;
}

__attribute__((constructor)) void resolve() { next_function(&g.system, "system"); }

}  // namespace
}  // namespace tachograph

using namespace tachograph;

TG_EXPORT int system(const char* command) {
    if (g.system && !settings::pass_to_children()) return g.system(command);
    return command ? run(command) : run("exit 0") == 0;
}

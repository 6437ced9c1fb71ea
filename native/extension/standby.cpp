#include "standby.h"

#include "compat.h"
#include "descriptors.h"
#include "read_clock.h"
#include "tachograph/api.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace tachograph::standby {
namespace {

constexpr size_t kLongestRequest = 64 * 1024;
constexpr size_t kStack = 1024 * 1024;  // address space; Python's imports run on it
constexpr time_t kSlowestClientS = 5;
constexpr int kLongestIdleOnceS = 10;  // who entered the process looks every 20 ms
constexpr int kLookS = 2;              // for threads of the program
constexpr int kBacklog = 16;
constexpr int64_t kLeaveNs = 500'000'000;
constexpr char kUserDiffers[] =
    "{\"problem\": \"it acts as another user at this moment: try again\"}\n";

// A descriptor and the file that it was ours for: a program may close any, and open others.
struct Descriptor {
    int number = -1;
    ino_t inode = 0;

    bool ours() const {
        struct stat status;
        return number >= 0 && fstat(number, &status) == 0 && S_ISSOCK(status.st_mode) &&
               status.st_ino == inode;
    }
    void take(int fd) {
        struct stat status;
        number = fd;
        inode = fstat(fd, &status) == 0 ? status.st_ino : 0;
    }
    void drop() {
        if (ours()) close(number);
        number = -1;
    }
};

enum Phase : int { off, waiting, serving, leaving };

struct State {
    std::atomic<int> phase{off};
    std::atomic<pid_t> tid{0};
    std::atomic<bool> left{false};  // for a fork, and is to come back
    std::atomic<bool> shut{false};  // the listener, to wake the thread
    bool once = false;
    int64_t once_until = 0;  // without a client: those of other users do not count
    bool hooked = false;
    uid_t user = 0;  // of the process when it began to stand by
    pthread_t thread{};
    Descriptor listener;
    Descriptor held;                 // a client that is answered again, or is told to be gone
    Descriptor queue[kBacklog + 1];  // clients that came while the thread was about to leave
    int queued = 0;
    sockaddr_un address{};
    socklen_t address_size = 0;
    PyObject* answer = nullptr;  // these under the GIL
    PyObject* held_for = nullptr;
    // Of switches between threads, as the program has it; 0: not known. Written before that is made
    // short, without the GIL.
    std::atomic<unsigned long> interval{0};
    const tg_api* api = nullptr;
    // As the C library has it: a recording that is on changes our import table.
    int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) = nullptr;
};
State g;

// Of the user that this process had when it began to stand by, which it may not act as now.
bool is_same_user(int fd, bool* own) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    *own = peer.pid == getpid();
    return peer.uid == g.user;
}

// One that waits; below 0 where none does.
int accept_client() {
    return make_high([] { return accept4(g.listener.number, nullptr, nullptr, SOCK_CLOEXEC); });
}

void keep(int fd) {
    if (g.queued > kBacklog) {
        close(fd);
    } else {
        g.queue[g.queued++].take(fd);
    }
}

// The first of those that were kept; below 0 if there is none.
int first_kept() {
    while (g.queued > 0) {
        const Descriptor first = g.queue[0];
        g.queued--;
        for (int i = 0; i < g.queued; i++) g.queue[i] = g.queue[i + 1];
        if (first.ours()) return first.number;
    }
    return -1;
}

void drop_all_kept() {
    while (g.queued > 0) g.queue[--g.queued].drop();
}

// Clients that wait at the listener, which is to be closed, would lose their connection. Those of
// other users do not count: they could keep the process from being left for good.
void keep_all_that_came() {
    if (!g.listener.ours()) return;
    shutdown(g.listener.number, SHUT_RDWR);
    for (int fd = accept_client(); fd >= 0; fd = accept_client()) {
        bool own = false;
        if (is_same_user(fd, &own) && !own) {
            keep(fd);
        } else {
            close(fd);
        }
    }
}

// 0 or an errno.
int listen_anew() {
    keep_all_that_came();
    g.listener.drop();
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = static_cast<uint64_t>(now());
    const int fd =
        make_high([] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    if (fd < 0) return errno;
    g.address.sun_family = AF_UNIX;
    const int length = snprintf(g.address.sun_path + 1, sizeof g.address.sun_path - 1,
                                "tachograph-standby-%d-%016llx", static_cast<int>(getpid()),
                                static_cast<unsigned long long>(random));
    g.address_size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    if (bind(fd, reinterpret_cast<sockaddr*>(&g.address), g.address_size) != 0 ||
        listen(fd, kBacklog) != 0) {
        const int error = errno;
        close(fd);
        return error;
    }
    if (g.once) g.once_until = now() + int64_t{kLongestIdleOnceS} * 1'000'000'000;
    g.listener.take(fd);
    g.shut.store(false);
    return 0;
}

// A client may be slow, but not for ever: no other one is answered meanwhile.
void hurry(int fd) {
    const timeval limit{kSlowestClientS, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool send_all(int fd, const char* text, size_t size) {
    while (size > 0) {
        const ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        text += sent;
        size -= static_cast<size_t>(sent);
    }
    return true;
}

// One line; empty if there is none.
std::string request_of(int fd) {
    std::string text;
    char part[4096];
    const int64_t limit = now() + kSlowestClientS * 1'000'000'000;
    while (text.empty() || text.back() != '\n') {
        const ssize_t got = recv(fd, part, sizeof part, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || text.size() + static_cast<size_t>(got) > kLongestRequest || now() > limit)
            return {};
        text.append(part, static_cast<size_t>(got));
    }
    return text;
}

// A server may act as another user for a moment (seteuid), which it does for all its threads: what
// is done then would be done with rights that are not those of the client.
bool acts_as_its_user() {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;
    return getresuid(&real, &effective, &saved) == 0 && real == g.user && effective == g.user &&
           saved == g.user;
}

// With the GIL: what Python says, of `request`, or that the client that was held has gone. A C
// string that is to be freed; whether the client is held. No object of C++ is alive here: taking
// the GIL may end the thread.
char* ask_python(const char* request, size_t size, bool held, size_t* length, bool* holds) {
    *holds = false;
    PyObject* text = request ? PyBytes_FromStringAndSize(request, static_cast<Py_ssize_t>(size))
                             : Py_NewRef(Py_None);
    PyObject* before = held && g.held_for ? Py_NewRef(g.held_for) : Py_NewRef(Py_None);
    PyObject* pair = text ? PyObject_CallFunctionObjArgs(g.answer, text, before, nullptr) : nullptr;
    Py_XDECREF(text);
    Py_DECREF(before);
    char* copy = nullptr;
    PyObject* answer = nullptr;
    PyObject* holds_for = nullptr;
    if (pair && PyArg_ParseTuple(pair, "SO", &answer, &holds_for)) {
        *length = static_cast<size_t>(PyBytes_GET_SIZE(answer));
        copy = static_cast<char*>(malloc(*length + 1));
        if (copy) memcpy(copy, PyBytes_AS_STRING(answer), *length);
        *holds = holds_for != Py_None;
        if (held || *holds) Py_XSETREF(g.held_for, *holds ? Py_NewRef(holds_for) : nullptr);
    }
    PyErr_Clear();
    Py_XDECREF(pair);
    return copy;
}

bool holds_interpreter(PyGILState_STATE* state) {
    if (tg_is_finalizing()) return false;
    *state = PyGILState_Ensure();
    return true;
}

// Asks Python and answers the client; whether the client is held from now on.
bool serve(const Descriptor& client, const char* request, size_t size, bool held) {
    // Asked after the request was read, which may have taken seconds.
    if (request && !acts_as_its_user()) {
        send_all(client.number, kUserDiffers, sizeof kUserDiffers - 1);
        return held;
    }
    PyGILState_STATE state;
    is_switch_interval(tg_switch_interval());
    const unsigned long interval = tg_shorten_switch_interval();
    size_t length = 0;
    bool holds = false;
    char* answer = nullptr;
    const bool runs = holds_interpreter(&state);
    if (runs) {
        answer = ask_python(request, size, held, &length, &holds);
        PyGILState_Release(state);
    }
    tg_restore_switch_interval(interval);
    if (!runs) return false;
    if (answer && request && client.ours()) send_all(client.number, answer, length);
    free(answer);
    return holds;
}

// The program may have closed the client's descriptor meanwhile, and have a file there.
void serve_new(int fd) {
    Descriptor client;
    client.take(fd);
    hurry(fd);
    std::string* request = new std::string(request_of(fd));
    const bool asks = !request->empty() && client.ours();
    if (asks && serve(client, request->data(), request->size(), false)) {
        g.held = client;
    } else {
        client.drop();
    }
    delete request;
}

// The client that is held has asked for something, or has gone.
void serve_held() {
    std::string* request =
        new std::string(g.held.ours() ? request_of(g.held.number) : std::string());
    const bool gone = request->empty();
    const bool holds = serve(g.held, gone ? nullptr : request->data(), request->size(), true);
    if (gone || !holds) g.held.drop();
    delete request;
}

// Whether all threads of the program have ended, but not by the end of the process: by the kernel's
// call alone (as in seccomp's strict mode), or the first one before others. Then this one keeps the
// process, which has the exit status of the thread that ends last: `status` is that of the first.
bool is_last(int* status) {
    struct stat tasks;
    // The first thread is among them until the process is gone.
    if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != 2 + 2) return false;
    // While the first thread lives, nothing is opened: a filter of the program's may kill for that.
    struct stat program;
    if (stat("/proc/self/exe", &program) == 0 || errno != ENOENT) return false;
    const int fd = make_high([] { return open("/proc/self/stat", O_RDONLY | O_CLOEXEC); });
    if (fd < 0) return false;
    char text[1024] = {};
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char* field = got > 0 ? strrchr(text, ')') : nullptr;
    if (!field || (field[2] != 'Z' && field[2] != 'X')) return false;
    for (int i = 0; i < 50 && field; ++i) field = strchr(field + 1, ' ');
    *status = field ? static_cast<int>(strtol(field, nullptr, 10)) : 0;
    return true;
}

enum class Event { none, client, held, idle, last };

// Sleeps until something comes. `fd` is that of a client.
Event wait_for_event(int* fd, int* status) {
    *fd = first_kept();
    if (*fd >= 0) return Event::client;
    const bool holds = g.held.number >= 0;
    if (holds && !g.held.ours()) return Event::held;
    // A sleeping accept would take the lowest number that is free from what the program opens. The
    // program may close the listener meanwhile: the file is woken all the same.
    pollfd both[2] = {{g.listener.number, POLLIN, 0}, {g.held.number, POLLIN, 0}};
    int ready = 0;
    for (int waited = 0; ready == 0; waited += kLookS) {
        if (g.once && !holds && waited >= kLongestIdleOnceS) return Event::idle;
        ready = poll(both, 2, kLookS * 1000);
        if (ready == 0 && is_last(status)) return Event::last;
    }
    if (ready < 0) return Event::none;
    if (both[1].revents != 0) return Event::held;
    *fd = accept_client();
    if (*fd >= 0) return Event::client;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        const timespec moment{0, 100'000'000};
        nanosleep(&moment, nullptr);
    }
    return Event::none;
}

bool turn(Phase from, Phase to) {
    int expected = from;
    return g.phase.compare_exchange_strong(expected, to);
}

// From now on clients are refused, as where nothing stands by, and not left without an answer.
// Those that have come in the meantime are served: whether there are any.
bool last_clients_came() {
    keep_all_that_came();
    return g.queued > 0;
}

void end_for_good() {
    g.listener.drop();
    drop_all_kept();
    g.tid.store(0);
    pthread_detach(pthread_self());
    g.phase.store(off);
}

void* run(void*) {
    prctl(PR_SET_NAME, "tachograph");
    g.tid.store(gettid());
    if (g.api) g.api->leave_out(gettid());
    for (;;) {
        int fd = -1;
        int status = 0;
        const Event event = wait_for_event(&fd, &status);
        if (event == Event::last && status != 0) syscall(SYS_exit, status >> 8 & 0xFF);
        if (event == Event::last) return nullptr;
        bool own = false;
        const bool welcome = event != Event::client || is_same_user(fd, &own);
        if (event == Event::client && (own || !welcome)) close(fd);
        if (!turn(waiting, serving)) {  // a fork is about to come
            if (event == Event::client && welcome && !own) keep(fd);
            return nullptr;
        }
        if (event == Event::held) serve_held();
        if (event == Event::client && welcome && !own) serve_new(fd);
        const bool used = event == Event::held || (event == Event::client && welcome) ||
                          event == Event::idle || now() > g.once_until;
        const bool over = g.once && used && !own && g.held.number < 0;
        const bool more = over && last_clients_came();
        if (over && !more) {
            end_for_good();
            return nullptr;
        }
        if ((more || g.shut.load() || !g.listener.ours()) && listen_anew() != 0) {
            end_for_good();
            return nullptr;
        }
        turn(serving, waiting);
    }
}

// 0 or an errno.
int start_thread() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStack);
    // The new thread inherits the mask: every signal is the program's, but faults are its own.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    g.phase.store(waiting);
    int failed = g.create(&g.thread, &attributes, run, nullptr);
    pthread_attr_destroy(&attributes);
    if (failed == EINVAL) failed = g.create(&g.thread, nullptr, run, nullptr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed != 0) g.phase.store(off);
    return failed;
}

int start() {
    const int failed = listen_anew();
    if (failed != 0) return failed;
    const int refused = start_thread();
    if (refused != 0) g.listener.drop();
    return refused;
}

// Also where native code forks: what the child holds of the sockets is the parent's.
void drop_in_child() {
    g.listener.drop();
    g.held.drop();
    drop_all_kept();
}

// Lets the sleeping thread see that it is to leave: it accepts a connection of our own. Where no
// descriptor is left for one, the listener is shut, and clients are refused until there is another.
void wake() {
    const int fd =
        make_high([] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    if (fd < 0) {
        g.shut.store(true);
        if (g.listener.ours()) shutdown(g.listener.number, SHUT_RDWR);
        return;
    }
    connect(fd, reinterpret_cast<sockaddr*>(&g.address), g.address_size);
    close(fd);
}

}  // namespace

std::optional<std::string> begin(PyObject* answer, bool once) {
    if (g.phase.load() != off || g.left.load()) {
        Py_DECREF(answer);
        return std::nullopt;
    }
    g.user = geteuid();
    if (!acts_as_its_user()) {
        Py_DECREF(answer);
        return std::string("its real, effective and saved user are not one");
    }
    Py_XSETREF(g.answer, answer);
    is_switch_interval(tg_switch_interval());
    g.once = once;
    if (!g.create) g.create = pthread_create;
    if (!g.hooked) {
        if (const int failed = pthread_atfork(nullptr, nullptr, drop_in_child); failed != 0)
            return std::string(strerror(failed));
        g.hooked = true;
    }
    if (const int failed = start(); failed != 0) return std::string(strerror(failed));
    return std::nullopt;
}

bool is_on() { return g.phase.load() != off; }

void leave_out(const tg_api* api) {
    g.api = api;
    api->leave_out(g.tid.load());
}

void is_switch_interval(unsigned long us) {
    if (us) g.interval.store(us);
}

void before_fork() {
    // On 3.11 it stays; one that is answering a client stays too, and is counted as it should be.
    if (!tg_counts_threads || !turn(waiting, leaving)) return;
    const pid_t tid = g.tid.load();
    wake();
    const int64_t limit = now() + kLeaveNs;
    timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += 1;
    if (pthread_timedjoin_np(g.thread, nullptr, &when) != 0) {
        turn(leaving, waiting);
        return;
    }
    g.left.store(true);
    g.phase.store(off);
    g.tid.store(0);
    // It is among the process's threads until the kernel is done with it.
    while (tid > 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0 && now() < limit) sched_yield();
}

bool left_for_fork() { return g.left.load(); }

void come_back() {
    if (!g.left.exchange(false)) return;
    if ((g.shut.load() || !g.listener.ours()) && listen_anew() != 0) return;
    if (start_thread() != 0) g.listener.drop();
}

void begin_in_child() {
    const bool was_on = g.left.exchange(false) || g.phase.load() != off;
    drop_in_child();
    g.tid.store(0);
    g.phase.store(off);
    Py_CLEAR(g.held_for);
    tg_restore_switch_interval_in_child(g.interval.load());
    if (was_on && !g.once) start();
}

}  // namespace tachograph::standby

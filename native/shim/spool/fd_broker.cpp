#include "spool/fd_broker.h"

#include "base/kernel.h"
#include "base/mapped_file.h"
#include "spool/layout.h"
#include "spool/settings.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tachograph::fd_broker {
namespace {

constexpr uint32_t kMostFiles = 2;
// How long the helper waits for a segment, two of which are ahead; and how long a thread of the
// program waits, at the start of a process and for a row of the process log. It takes milliseconds.
constexpr int64_t kSegmentPatienceNs = 1'000'000'000;
constexpr int64_t kProcessPatienceNs = 2'000'000'000;
constexpr int64_t kLogPatienceNs = 500'000'000;

FileRequest request_for_files() {
    FileRequest request{};
    memcpy(request.magic, kRequestMagic, sizeof request.magic);
    return request;
}

// The name of the recording command's socket, in the abstract namespace, whose names begin with a
// zero: no file, and the same whatever the root directory. Its length; 0 if there is none.
long find_socket(sockaddr_un* name) {
    const auto [text, length] = settings::options().fd_broker;
    if (length == 0 || length >= sizeof name->sun_path) return 0;
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path + 1, text, length);
    return static_cast<long>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

// Of the process that listens there, as the kernel knows it; -1 unknown.
int64_t user_of(long fd) {
    ucred other{};
    socklen_t room = sizeof other;
    const bool known = kernel::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED,
                                    kernel::address(&other), kernel::address(&room)) == 0;
    return known ? other.uid : -1;
}

// Whether the recording command may be of this user. Root's processes may have become other users;
// those of another user are what they were, also where a namespace gives that user another number.
bool is_trusted(int64_t user) {
    const bool roots = settings::options().owner == 0;
    return user == 0 || (!roots && user == kernel::call(SYS_geteuid));
}

// A connection that nothing is waited for; or a negative errno. ECONNREFUSED: the socket is not
// there, or any process may have taken its name since.
long connect_at_once() {
    sockaddr_un name{};
    const long size = find_socket(&name);
    if (size == 0) return -ECONNREFUSED;
    const long fd =
        kernel::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fd;
    long failed = kernel::call(SYS_connect, fd, kernel::address(&name), size);
    if (failed == 0 && !is_trusted(user_of(fd))) failed = -ECONNREFUSED;
    if (failed == 0) return fd;
    kernel::call(SYS_close, fd);
    return failed;
}

// A recording command that did not answer in time is not waited for again by the program's threads
// for a while: neither by those of this process, nor by those of children that it forks later. In
// memory that they share.
constexpr int64_t kSilenceNs = 10'000'000'000;
constinit std::atomic<std::atomic<int64_t>*> g_silent_until{nullptr};

std::atomic<int64_t>* silent_until() {
    std::atomic<int64_t>* until = g_silent_until.load(std::memory_order_acquire);
    if (until) return until;
    constexpr long kSize = sizeof *until;
    const long made =
        kernel::call(SYS_mmap, 0, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (kernel::failed(made)) return nullptr;
    if (g_silent_until.compare_exchange_strong(until,
                                               reinterpret_cast<std::atomic<int64_t>*>(made)))
        return reinterpret_cast<std::atomic<int64_t>*>(made);
    kernel::call(SYS_munmap, made, kSize);
    return until;
}

bool is_silent() {
    const std::atomic<int64_t>* until = silent_until();
    return until && kernel::monotonic_ns() < until->load(std::memory_order_relaxed);
}

void was_silent() {
    if (std::atomic<int64_t>* until = silent_until())
        until->store(kernel::monotonic_ns() + kSilenceNs, std::memory_order_relaxed);
}

// Whether what was sent on a connection was taken. A recording command that does not answer in time
// may be stopped: it will take it when it goes on.
bool is_taken(long line, int64_t patience_ns) {
    const int64_t limit = kernel::monotonic_ns() + patience_ns;
    for (;;) {
        FileAnswer answer{};
        const long got =
            kernel::call(SYS_recvfrom, line, kernel::address(&answer), sizeof answer, 0, 0, 0);
        if (got >= 0) return got == static_cast<long>(sizeof answer) && answer.error == 0;
        const int64_t left = limit - kernel::monotonic_ns();
        if (got != -EINTR && got != -EAGAIN) return false;
        if (left <= 0) {
            was_silent();
            return true;
        }
        pollfd ready = {static_cast<int>(line), POLLIN, 0};
        const timespec timeout = kernel::to_timespec(left);
        kernel::call(SYS_ppoll, kernel::address(&ready), 1, kernel::address(&timeout), 0, 0);
    }
}

// `answered_ns`: how long an answer is waited for; 0 not at all.
long hold(const FileRequest& request, const int* fds, uint32_t count, int64_t answered_ns = 0) {
    const long line = connect_at_once();
    if (line < 0) return -line;
    alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))] = {};
    iovec part = {const_cast<FileRequest*>(&request), sizeof request};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    long sent = -EINTR;
    while (sent == -EINTR)
        sent = kernel::call(SYS_sendmsg, line, kernel::address(&message), MSG_NOSIGNAL);
    long failed = sent < 0 ? -sent : 0;
    // It takes what its own user sends; of others it asks first where they come from, while they
    // live.
    if (failed == 0 && answered_ns > 0 && user_of(line) != kernel::call(SYS_geteuid) &&
        !is_silent() && !is_taken(line, answered_ns))
        failed = ECONNREFUSED;
    kernel::call(SYS_close, line);
    return failed;
}

// Asked once: what it says does not change.
constinit std::atomic<bool> g_log_refused{false};

// The connection of one request.
class Line {
  public:
    explicit Line(int64_t patience_ns) : limit_(kernel::monotonic_ns() + patience_ns) {}
    ~Line() {
        if (fd_ >= 0) kernel::call(SYS_close, fd_);
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    // 0 or an errno; ECONNREFUSED: the socket is not there, or it is not the recording command's.
    long open() {
        sockaddr_un name{};
        const long size = find_socket(&name);
        if (size == 0) return ECONNREFUSED;
        fd_ = kernel::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd_ < 0) return ECONNREFUSED;
        if (const long failed = in_time(SYS_connect, SO_SNDTIMEO, kernel::address(&name), size, 0);
            failed < 0)
            return -failed;
        // Once the recording command is gone, any process may take its name.
        return is_trusted(user_of(fd_)) ? 0 : ECONNREFUSED;
    }

    long send(const iovec* parts, size_t count) {
        msghdr message{};
        message.msg_iov = const_cast<iovec*>(parts);
        message.msg_iovlen = count;
        const long sent =
            in_time(SYS_sendmsg, SO_SNDTIMEO, kernel::address(&message), MSG_NOSIGNAL, 0);
        return sent < 0 ? -sent : 0;
    }

    // 0 and exactly `count` descriptors, or an errno and none.
    long receive(int* fds, uint32_t count) {
        FileAnswer answer{};
        iovec part = {&answer, sizeof answer};
        alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))];
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const long got =
            in_time(SYS_recvmsg, SO_RCVTIMEO, kernel::address(&message), MSG_CMSG_CLOEXEC, 0);
        if (got < 0) return -got;
        int received[kMostFiles] = {-1, -1};
        uint32_t number = 0;
        const cmsghdr* head = CMSG_FIRSTHDR(&message);
        if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            number = static_cast<uint32_t>((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            if (number > kMostFiles) number = kMostFiles;
            memcpy(received, CMSG_DATA(head), number * sizeof(int));
        }
        const bool whole = got == static_cast<long>(sizeof answer) &&
                           memcmp(answer.magic, kAnswerMagic, sizeof answer.magic) == 0;
        if (whole && answer.error == 0 && number == count) {
            if (count > 0) memcpy(fds, received, count * sizeof(int));
            return 0;
        }
        for (uint32_t i = 0; i < number; ++i) kernel::call(SYS_close, received[i]);
        // Closed without an answer: the broker does not know us as a process of the recording.
        return whole && answer.error != 0 ? static_cast<long>(answer.error) : ECONNREFUSED;
    }

    // Tells that the files are in use; false if the other end is gone.
    bool confirm() {
        char yes = 1;
        const iovec part = {&yes, 1};
        return send(&part, 1) == 0;
    }

  private:
    // A call that may wait, also when the program's signals interrupt it, until the limit.
    long in_time(long number, int option, long b, long c, long d) {
        for (;;) {
            const int64_t left = limit_ - kernel::monotonic_ns();
            if (left < 1'000) return -EAGAIN;
            const timeval timeout = {static_cast<time_t>(left / 1'000'000'000),
                                     static_cast<suseconds_t>(left % 1'000'000'000 / 1'000)};
            kernel::call(SYS_setsockopt, fd_, SOL_SOCKET, option, kernel::address(&timeout),
                         sizeof timeout);
            const long result = kernel::call(number, fd_, b, c, d);
            if (result != -EINTR) return result;
        }
    }

    long fd_ = -1;
    int64_t limit_;
};

// The errno that ends a request: the one it began with where the other end is not there, or not any
// more.
long outcome(long failed, long error) {
    return failed == ECONNREFUSED || failed == ECONNRESET || failed == EPIPE ? error : failed;
}

long ask(const FileRequest& request, long error, int64_t patience_ns, uint32_t count,
         const uint64_t* sizes, uint8_t** bases) {
    Line line(patience_ns);
    if (const long failed = line.open(); failed != 0) return outcome(failed, error);
    const iovec part = {const_cast<FileRequest*>(&request), sizeof request};
    if (const long failed = line.send(&part, 1); failed != 0) return outcome(failed, error);
    int fds[kMostFiles];
    if (const long failed = line.receive(fds, count); failed != 0) return outcome(failed, error);
    long failed = 0;
    uint32_t mapped = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (failed != 0) {
            kernel::call(SYS_close, fds[i]);
            continue;
        }
        failed = mapped_file::map(fds[i], sizes[i], &bases[i]);
        if (failed == 0) ++mapped;
    }
    if (failed == 0 && line.confirm()) return 0;
    while (mapped > 0) {
        --mapped;
        mapped_file::unmap(bases[mapped], sizes[mapped]);
        bases[mapped] = nullptr;
    }
    return failed != 0 ? failed : EAGAIN;
}

}  // namespace

bool may_help(long error) {
    return error == EACCES || error == EPERM || error == ENOENT || error == EROFS;
}

long segment(long error, int64_t start_ns, uint32_t sequence, uint64_t size, uint8_t** base) {
    FileRequest request = request_for_files();
    request.what = static_cast<uint32_t>(Request::segment);
    request.sequence = sequence;
    request.start_ns = start_ns;
    request.segment_size = size;
    return ask(request, error, kSegmentPatienceNs, 1, &size, base);
}

long process(long error, int64_t start_ns, const Sizes& sizes, uint8_t* (&bases)[2]) {
    FileRequest request = request_for_files();
    request.what = static_cast<uint32_t>(Request::process);
    request.start_ns = start_ns;
    request.control_size = sizes.control;
    request.segment_size = sizes.segment;
    const uint64_t each[2] = {sizes.control, sizes.segment};
    return ask(request, error, kProcessPatienceNs, 2, each, bases);
}

long hold_segment(int64_t start_ns, uint32_t sequence, uint64_t size, int fd) {
    FileRequest request = request_for_files();
    request.what = static_cast<uint32_t>(Request::held_segment);
    request.sequence = sequence;
    request.start_ns = start_ns;
    request.segment_size = size;
    return hold(request, &fd, 1);
}

long hold_process(int64_t start_ns, const Sizes& sizes, const int (&fds)[2]) {
    silent_until();  // before the program forks
    FileRequest request = request_for_files();
    request.what = static_cast<uint32_t>(Request::held_process);
    request.start_ns = start_ns;
    request.control_size = sizes.control;
    request.segment_size = sizes.segment;
    return hold(request, fds, 2, kProcessPatienceNs);
}

bool is_gone() {
    const long line = connect_at_once();
    if (line >= 0) kernel::call(SYS_close, line);
    return line == -ECONNREFUSED;
}

bool log(const ProcessRecord& record) {
    if (g_log_refused.load(std::memory_order_relaxed) || is_silent()) return false;
    Line line(kLogPatienceNs);
    FileRequest request = request_for_files();
    request.what = static_cast<uint32_t>(Request::log);
    const iovec parts[2] = {{&request, sizeof request},
                            {const_cast<ProcessRecord*>(&record), sizeof record}};
    long failed = line.open();
    if (failed == 0) failed = line.send(parts, 2);
    const bool sent = failed == 0;
    if (sent) failed = line.receive(nullptr, 0);
    if (failed == EAGAIN)
        was_silent();
    else if (failed != 0)
        g_log_refused.store(true, std::memory_order_relaxed);
    // A recording command that is stopped or busy takes what was sent when it goes on.
    return failed == 0 || (sent && failed == EAGAIN);
}

}  // namespace tachograph::fd_broker

// Control files and segments in memory, which are passed on to a recording command. That is a
// socket of this test here; with the real one it is tested with real recordings.
#include "spool/memory_file.h"
#include "base/mapped_file.h"
#include "check.h"
#include "set_settings.h"
#include "spool/layout.h"
#include "spool/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

using namespace tachograph;

namespace {

constexpr uint64_t kSegmentSize = 128 << 10;
constexpr uint64_t kFirstSegmentSize = 64 << 10;

// The recording command, as far as a process meets it.
class Listener {
  public:
    explicit Listener(const char* name) {
        tests::set_settings(tests::folder, "interval_ns=1,fd_broker=%s", name);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path + 1, name, strlen(name));
        const auto size =
            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + strlen(name));
        fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        CHECK(fd_ >= 0 && bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
        CHECK(listen(fd_, 8) == 0);
    }
    ~Listener() { end(); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    void end() {
        if (fd_ >= 0) close(fd_);
        fd_ = -1;
    }

    // What was passed on, which no answer was waited for: the request, and the number of
    // descriptors.
    size_t take(FileRequest* request, int (&fds)[2]) const {
        const int line = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
        CHECK(line >= 0);
        alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
        iovec part = {request, sizeof *request};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        CHECK(recvmsg(line, &message, MSG_CMSG_CLOEXEC) == static_cast<ssize_t>(sizeof *request));
        close(line);
        const cmsghdr* head = CMSG_FIRSTHDR(&message);
        CHECK(head && head->cmsg_type == SCM_RIGHTS);
        const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        CHECK(count <= 2);
        memcpy(fds, CMSG_DATA(head), count * sizeof(int));
        return count;
    }

  private:
    int fd_ = -1;
};

int files_in_folder() {
    DIR* directory = opendir(tests::folder);
    CHECK(directory);
    int count = 0;
    while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

std::string path_of(const char* end) {
    return std::string(tests::folder) + "/" + std::to_string(getpid()) + "-1." + end;
}

std::string contents(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    std::string text(1 << 18, '\0');
    const ssize_t got = read(fd, text.data(), text.size());
    CHECK(got >= 0);
    close(fd);
    text.resize(static_cast<size_t>(got));
    return text;
}

void append(const char* text) {
    const spool::Ticket ticket = spool::reserve(static_cast<Kind>(200), 8 + strlen(text));
    CHECK(ticket.record);
    memcpy(ticket.record + 8, text, strlen(text));
    spool::commit(ticket);
}

// Held from the start on, as far as the process knows.
void begin(const Listener& listener, int (&fds)[2]) {
    FileRequest request{};
    CHECK(spool::open(tests::folder, kSegmentSize, 1, true) == 0);
    CHECK(listener.take(&request, fds) == 2);
    CHECK(request.what == static_cast<uint32_t>(Request::held_process) && request.start_ns == 1);
    CHECK(request.control_size == kControlSize + kPendingSize);
    CHECK(request.segment_size == kFirstSegmentSize);
}

}  // namespace

TEST(memory_files_are_passed_on) {
    const Listener listener("tachograph-test-memory-passed");
    int fds[2];
    begin(listener, fds);
    struct stat control{};
    struct stat segment{};
    CHECK(fstat(fds[0], &control) == 0 && control.st_size == kControlSize + kPendingSize);
    CHECK(fstat(fds[1], &segment) == 0 && segment.st_size == kFirstSegmentSize);
    CHECK(ftruncate(fds[1], 0) != 0 && errno == EPERM);
    append("of the first segment");
    char text[4096];
    CHECK(pread(fds[1], text, sizeof text, 0) == sizeof text);
    CHECK(memcmp(text, "TACHSEG1", 8) == 0 && memmem(text, sizeof text, "first segment", 13));
    CHECK(spool::prepare_second() == 0);
    FileRequest request{};
    CHECK(listener.take(&request, fds) == 1);
    CHECK(request.what == static_cast<uint32_t>(Request::held_segment) && request.sequence == 1);
    CHECK(fstat(fds[0], &segment) == 0 && segment.st_size == kSegmentSize);
    CHECK(files_in_folder() == 0);
}

TEST(memory_files_of_a_recording_command_that_is_gone) {
    Listener listener("tachograph-test-memory-gone");
    int fds[2];
    begin(listener, fds);
    append("before");
    spool::control()->copied_ns = 2;
    CHECK(spool::maintain() == 0);
    CHECK(files_in_folder() == 0);  // it is there, if slow
    spool::control()->copied_ns = 2;
    listener.end();
    usleep(1'100'000);  // it is looked for once a second
    CHECK(spool::maintain() == 0);
    CHECK(contents(path_of("000000.seg")).find("before") != std::string::npos);
    std::string control = contents(path_of("ctl"));
    CHECK(control.compare(0, 8, "TACHCTL1") == 0);
    CHECK(reinterpret_cast<const Control*>(control.data())->copied_ns > 2);
    append("afterwards");
    spool::save(true);
    CHECK(contents(path_of("000000.seg")).find("afterwards") != std::string::npos);
    control = contents(path_of("ctl"));
    CHECK(reinterpret_cast<const Control*>(control.data())->copied_ns == 0);
    // A request can only be in the copy now.
    const int fd = open(path_of("ctl").c_str(), O_WRONLY | O_CLOEXEC);
    const uint32_t yes = 1;
    CHECK(pwrite(fd, &yes, sizeof yes, offsetof(Control, stop_requested)) == sizeof yes);
    close(fd);
    CHECK(spool::maintain() == 0);
    CHECK(spool::stop_requested());
    // Then nothing is made any more.
    CHECK(unlink(path_of("ctl").c_str()) == 0);
    spool::save(true);
    CHECK(access(path_of("ctl").c_str(), F_OK) != 0);
}

TEST(memory_files_that_cannot_be_passed_on) {
    {
        const Listener listener("tachograph-test-memory-none");
    }
    CHECK(spool::open(tests::folder, kSegmentSize, 1) == 0);
    CHECK(files_in_folder() == 2);
    CHECK(spool::control()->copied_ns == 0);
}

TEST(memory_files_longer_than_allowed) {
    signal(SIGXFSZ, SIG_DFL);
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = 4096;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    uint8_t* base = nullptr;
    int fd = -1;
    CHECK(memory_file::create(8192, false, &base, &fd) == EFBIG);
    CHECK(memory_file::copy(path_of("ctl").c_str(), "x", 1, 4096, true) == EFBIG);
    CHECK(memory_file::create(4096, true, &base, &fd) == 0);
    base[4095] = 1;
    mapped_file::unmap(base, 4096);
    close(fd);
}

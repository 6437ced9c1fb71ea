// What a process believes of those who say that they make files for it. The other side is a thread
// here; that the recording command is one that does is tested with real recordings.
#include "spool/fd_broker.h"
#include "check.h"
#include "set_settings.h"
#include "spool/layout.h"
#include "spool/settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <thread>

using namespace tachograph;

namespace {

constexpr uint64_t kSize = 65536;
constexpr uint64_t kControl = 4096;

struct Answer {
    char magic[8] = {'T', 'A', 'C', 'H', 'G', 'I', 'V', '1'};
    uint32_t error = 0;
    uint32_t files = 0;
};

// As a process of a recording that has such a broker; without a name: that has none.
void be_recorded(const char* name) {
    tests::set_settings(tests::folder, "interval_ns=1%s%s", name ? ",fd_broker=" : "",
                        name ? name : "");
    CHECK(settings::are_set());
}

int listen_at(const char* name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name, strlen(name));
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + strlen(name));
    CHECK(fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(listen(fd, 8) == 0);
    return fd;
}

int make_file(uint64_t size) {
    char path[600];
    static int number = 0;
    snprintf(path, sizeof path, "%s/file-%d", tests::folder, number++);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) == 0);
    return fd;
}

void give(int line, const Answer& answer, const int* fds, size_t count) {
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    Answer text = answer;
    iovec part = {&text, sizeof text};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsghdr* head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    }
    CHECK(sendmsg(line, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof text));
}

int open_descriptors() {
    DIR* directory = opendir("/proc/self/fd");
    CHECK(directory);
    int count = 0;
    while (readdir(directory)) ++count;
    closedir(directory);
    return count;
}

// Asks for a segment of a broker that behaves so, given the connection; the result.
long asked(const char* name, const std::function<void(int)>& behave, uint8_t** base) {
    be_recorded(name);
    const int listener = listen_at(name);
    std::thread other([&] {
        const int line = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        CHECK(line >= 0);
        behave(line);
        close(line);
    });
    const long result = fd_broker::segment(EACCES, 17, 3, kSize, base);
    other.join();
    close(listener);
    return result;
}

void need_root() {
    if (geteuid() == 0) return;
    printf("a process believes root only\n");
    _Exit(77);
}

}  // namespace

TEST(broker_is_not_there) {
    uint8_t* base = nullptr;
    be_recorded(nullptr);
    CHECK(fd_broker::segment(EACCES, 17, 3, kSize, &base) == EACCES && !base);
    be_recorded("tachograph-test-nobody");
    CHECK(fd_broker::segment(EROFS, 17, 3, kSize, &base) == EROFS && !base);
}

TEST(broker_gives_a_segment) {
    need_root();
    uint8_t* base = nullptr;
    const int before = open_descriptors();
    char confirmed = 0;
    const long result = asked(
        "tachograph-test-gives",
        [&](int line) {
            char request[64];
            CHECK(recv(line, request, sizeof request, 0) == 40);
            CHECK(memcmp(request, "TACHASK1\1\0\0\0\3\0\0\0\21\0\0\0\0\0\0\0", 24) == 0);
            const int fd = make_file(kSize);
            give(line, {.files = 1}, &fd, 1);
            CHECK(recv(line, &confirmed, 1, 0) == 1);
            CHECK(pwrite(fd, "x", 1, kSize - 1) == 1);
            close(fd);
        },
        &base);
    CHECK(result == 0 && base && confirmed == 1);
    CHECK(base[kSize - 1] == 'x');
    CHECK(open_descriptors() == before);
}

TEST(broker_gives_all_of_a_process_or_nothing) {
    need_root();
    const char* name = "tachograph-test-process";
    be_recorded(name);
    const int before = open_descriptors();
    for (const uint64_t last : {kSize, kSize / 2}) {
        const int listener = listen_at(name);
        std::thread other([&] {
            const int line = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            char text[64];
            CHECK(recv(line, text, sizeof text, 0) == 40);
            const int fds[2] = {make_file(kControl), make_file(last)};
            give(line, {.files = 2}, fds, 2);
            CHECK(recv(line, text, 1, 0) == (last == kSize ? 1 : 0));
            for (const int fd : fds) close(fd);
            close(line);
        });
        uint8_t* bases[2] = {};
        const long result = fd_broker::process(EACCES, 17, {kControl, kSize}, bases);
        other.join();
        close(listener);
        CHECK(result == (last == kSize ? 0 : EINVAL));
        for (uint8_t* base : bases) CHECK((base != nullptr) == (last == kSize));
    }
    CHECK(open_descriptors() == before);
}

TEST(broker_gives_something_else) {
    need_root();
    const int before = open_descriptors();
    uint8_t* base = nullptr;
    const auto gives = [&](const char* name, const Answer& answer, size_t count, uint64_t size) {
        return asked(
            name,
            [&](int line) {
                char text[64];
                CHECK(recv(line, text, sizeof text, 0) == 40);
                int fds[8];
                for (size_t i = 0; i < count; ++i) fds[i] = make_file(size);
                give(line, answer, fds, count);
                CHECK(recv(line, text, 1, 0) <= 0);
                for (size_t i = 0; i < count; ++i) close(fds[i]);
            },
            &base);
    };
    CHECK(gives("tachograph-test-full", {.error = ENOSPC}, 0, kSize) == ENOSPC);
    CHECK(gives("tachograph-test-small", {.files = 1}, 1, kSize - 1) == EINVAL);
    CHECK(gives("tachograph-test-none", {.files = 1}, 0, kSize) == EACCES);
    CHECK(gives("tachograph-test-two", {.files = 2}, 2, kSize) == EACCES);
    CHECK(gives("tachograph-test-magic", {.magic = "TACHX"}, 1, kSize) == EACCES);
    CHECK(asked("tachograph-test-ends", [](int) {}, &base) == EACCES);
    CHECK(!base && open_descriptors() == before);
}

TEST(broker_does_not_answer) {
    need_root();
    const char* name = "tachograph-test-silent";
    be_recorded(name);
    const int listener = listen_at(name);
    uint8_t* base = nullptr;
    CHECK(fd_broker::segment(EACCES, 17, 3, kSize, &base) == EAGAIN && !base);
    // A row of the process log is waited for once: a thousand times would not end in time.
    ProcessRecord record{};
    for (int i = 0; i < 1000; ++i) fd_broker::log(record);
    close(listener);
}

// Root's name that another user has taken.
TEST(broker_is_another_process) {
    need_root();
    const char* name = "tachograph-test-else";
    be_recorded(name);
    int ready[2];
    CHECK(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        if (setuid(65534) != 0) _exit(1);
        const int listener = listen_at(name);
        if (write(ready[1], "x", 1) != 1) _exit(2);
        const int line = accept(listener, nullptr, nullptr);
        char text[64];
        _exit(recv(line, text, sizeof text, 0) == 0 ? 0 : 3);
    }
    char byte = 0;
    CHECK(read(ready[0], &byte, 1) == 1);
    uint8_t* base = nullptr;
    CHECK(fd_broker::segment(EACCES, 17, 3, kSize, &base) == EACCES && !base);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

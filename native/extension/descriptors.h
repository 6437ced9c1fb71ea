// Descriptors of our own in a program that is not ours.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace tachograph {

// Programs count on the numbers of their descriptors, and a daemon that has closed its standard
// streams may still write to them: ours are numbered from here on.
inline constexpr int kFirstDescriptor = 200;

// The same file under a number that no program uses by chance; `fd` itself where there is none.
inline int move_high(int fd) {
    const int high = fd < kFirstDescriptor ? fcntl(fd, F_DUPFD_CLOEXEC, kFirstDescriptor) : -1;
    if (high < 0) return fd;
    close(fd);
    return high;
}

// While one is alive, no file gets the number of a closed standard stream: a thread that writes
// there would write into it, or read from it. These numbers are taken by descriptors that can be
// neither read from nor written to (O_PATH): for the program they are closed still.
class ClosedStreams {
  public:
    ClosedStreams() {
        int number = -1;
        while ((number = open("/", O_PATH | O_CLOEXEC)) >= 0 && number < kStreams)
            taken_[number] = true;
        if (number >= 0) close(number);
    }
    ~ClosedStreams() {
        const int error = errno;
        struct stat root;
        struct stat now;
        for (int i = 0; i < kStreams; i++) {
            if (!taken_[i] || stat("/", &root) != 0 || fstat(i, &now) != 0) continue;
            // The program may have closed it, and opened a file of its own.
            if (now.st_dev == root.st_dev && now.st_ino == root.st_ino) close(i);
        }
        errno = error;
    }
    ClosedStreams(const ClosedStreams&) = delete;
    ClosedStreams& operator=(const ClosedStreams&) = delete;

  private:
    static constexpr int kStreams = 3;
    bool taken_[kStreams] = {};
};

// What `make` makes, under a high number from the first moment that it could be written to; below
// 0, with its errno, where it fails.
template <typename Make>
int make_high(Make make) {
    const ClosedStreams kept;
    return move_high(make());
}

}  // namespace tachograph

// Descriptors of our own in a program that is not ours.
#pragma once

#include <fcntl.h>
#include <unistd.h>

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

}  // namespace tachograph

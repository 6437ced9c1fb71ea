#include "base/mapped_file.h"

#include "base/kernel.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <cerrno>

namespace tachograph::mapped_file {
namespace {

// Blocks are allocated here, so that a full disk is an error now and never a SIGBUS later.
long allocate(long fd, uint64_t size) {
    long failed = kernel::call(SYS_fallocate, fd, 0, 0, static_cast<long>(size));
    if (failed != -EOPNOTSUPP && failed != -ENOSYS) return -failed;
    // No fallocate here: writing zeros allocates the blocks as well.
    static const uint8_t zeros[4096] = {};
    failed = 0;
    for (uint64_t at = 0; at < size && failed == 0; at += sizeof zeros) {
        const long wrote = kernel::call(SYS_pwrite64, fd, kernel::address(zeros), sizeof zeros,
                                        static_cast<long>(at));
        if (wrote != static_cast<long>(sizeof zeros)) failed = wrote < 0 ? wrote : -ENOSPC;
    }
    return -failed;
}

long map_open(long fd, uint64_t size, uint8_t** base) {
    const long mapped = kernel::map_new(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (kernel::failed(mapped)) return -mapped;
    *base = reinterpret_cast<uint8_t*>(mapped);
    return 0;
}

}  // namespace

long fill(long fd, uint64_t size, uint8_t** base) {
    long failed = allocate(fd, size);
    if (failed == 0) failed = map_open(fd, size, base);
    kernel::call(SYS_close, fd);
    return failed;
}

long map(int fd, uint64_t size, uint8_t** base) {
    struct stat status{};
    long failed = -kernel::call(SYS_fstat, fd, kernel::address(&status));
    if (failed == 0 && (!S_ISREG(status.st_mode) || status.st_size != static_cast<long>(size)))
        failed = EINVAL;
    if (failed == 0) failed = map_open(fd, size, base);
    kernel::call(SYS_close, fd);
    return failed;
}

void unmap(uint8_t* base, uint64_t size) {
    kernel::call(SYS_munmap, kernel::address(base), static_cast<long>(size));
}

}  // namespace tachograph::mapped_file

#include "spool/memory_file.h"

#include "base/kernel.h"
#include "spool/spool_folder.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <cerrno>

namespace tachograph::memory_file {
namespace {

// Not in the headers of older C libraries.
constexpr long kCloseOnExec = 1;
constexpr long kAllowSealing = 2;
constexpr long kNeverExecutable = 8;
constexpr long kAddSeals = 1033;
constexpr long kSealSeal = 1;
constexpr long kSealShrink = 2;
constexpr long kSealGrow = 4;
constexpr long kNoHugePage = 15;
constexpr long kDontDump = 16;

long make() {
    static const char name[] = "tachograph";
    const long made = kernel::call(SYS_memfd_create, kernel::address(name),
                                   kCloseOnExec | kAllowSealing | kNeverExecutable);
    // Before Linux 6.3.
    if (made == -EINVAL)
        return kernel::call(SYS_memfd_create, kernel::address(name), kCloseOnExec | kAllowSealing);
    return made;
}

}  // namespace

bool may_reach(uint64_t size) {
    rlimit limit{};
    return kernel::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, kernel::address(&limit)) != 0 ||
           size <= limit.rlim_cur;
}

long create(uint64_t size, bool at_once, uint8_t** base, int* fd) {
    if (!may_reach(size)) return EFBIG;
    const long made = make();
    if (made < 0) return -made;
    const auto bytes = static_cast<long>(size);
    long failed = kernel::call(SYS_ftruncate, made, bytes);
    if (failed == 0 && at_once) failed = kernel::call(SYS_fallocate, made, 0, 0, bytes);
    if (failed == 0)
        failed = kernel::call(SYS_fcntl, made, kAddSeals, kSealShrink | kSealGrow | kSealSeal);
    if (failed == 0) {
        const long mapped = kernel::map_new(size, PROT_READ | PROT_WRITE, MAP_SHARED, made);
        if (mapped >= 0 || mapped < -4095) {
            // A huge page would be more memory than all of it, and a core file has no use for it.
            kernel::call(SYS_madvise, mapped, bytes, kNoHugePage);
            kernel::call(SYS_madvise, mapped, bytes, kDontDump);
            *base = reinterpret_cast<uint8_t*>(mapped);
            *fd = static_cast<int>(made);
            return 0;
        }
        failed = mapped;
    }
    kernel::call(SYS_close, made);
    return -failed;
}

long copy(const char* path, const void* from, uint64_t size, uint64_t at, bool make) {
    if (!may_reach(at + size)) return EFBIG;
    const long fd = spool_folder::open(path, O_WRONLY | (make ? O_CREAT : 0));
    if (fd < 0) return -fd;
    long failed = 0;
    for (uint64_t done = 0; done < size && failed == 0;) {
        const long wrote =
            kernel::call(SYS_pwrite64, fd, kernel::address(static_cast<const char*>(from) + done),
                         static_cast<long>(size - done), static_cast<long>(at + done));
        if (wrote > 0)
            done += static_cast<uint64_t>(wrote);
        else if (wrote != -EINTR)
            failed = wrote == 0 ? EIO : -wrote;
    }
    kernel::call(SYS_close, fd);
    return failed;
}

}  // namespace tachograph::memory_file

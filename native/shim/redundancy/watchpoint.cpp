#include "redundancy/watchpoint.h"

#include "base/kernel.h"
#include "base/kernel_text.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <cerrno>

namespace tachograph {
namespace {

// perf_event_attr of linux/perf_event.h as far as `sig_data` (Linux 5.13), which older headers
// lack.
struct Attributes {
    uint32_t type = 5;  // PERF_TYPE_BREAKPOINT
    uint32_t size = sizeof(Attributes);
    uint64_t config = 0;
    uint64_t sample_period = 1;
    uint64_t sample_type = 0;
    uint64_t read_format = 0;
    uint64_t flags = 0;
    uint32_t wakeup_events = 0;
    uint32_t breakpoint_type = 0;
    uint64_t breakpoint_address = 0;
    uint64_t breakpoint_length = 0;
    uint64_t unused[6] = {};
    uint64_t signal_data = 0;
};
static_assert(sizeof(Attributes) == 128);

constexpr uint64_t kDisabled = 1;
constexpr uint64_t kExcludeKernel = uint64_t{1} << 5;
constexpr uint64_t kExcludeHypervisor = uint64_t{1} << 6;
constexpr uint64_t kRemoveOnExec = uint64_t{1} << 36;
constexpr uint64_t kSigtrap = uint64_t{1} << 37;
constexpr long kCloseOnExec = 8;  // PERF_FLAG_FD_CLOEXEC

constexpr long kDisable = 0x2401;               // PERF_EVENT_IOC_DISABLE
constexpr long kGetId = 0x80082407;             // PERF_EVENT_IOC_ID
constexpr long kModifyAttributes = 0x4008240B;  // PERF_EVENT_IOC_MODIFY_ATTRIBUTES

// The program's next descriptor shall have the number that it would have had without us; and select
// takes none above 1023 from it.
constexpr uint64_t kHighest = 1024;
constexpr uint64_t kOurs = 160;

Attributes attributes(uint64_t data, uint64_t flags) {
    Attributes made;
    made.flags = flags | kExcludeKernel | kExcludeHypervisor | kRemoveOnExec | kSigtrap;
    made.signal_data = data;
    return made;
}

int out_of_the_way(int fd) {
    rlimit limit{};
    if (kernel::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, kernel::address(&limit)) != 0) return fd;
    const uint64_t end = limit.rlim_cur < kHighest ? limit.rlim_cur : kHighest;
    if (end <= kOurs) return fd;
    const long moved = kernel::call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, static_cast<long>(end - kOurs));
    if (moved < 0) return fd;
    kernel::call(SYS_close, fd);
    return static_cast<int>(moved);
}

}  // namespace

bool kernel_has_deferred_traps(const char* release) {
    int64_t major = 0;
    int64_t minor = 0;
    const char* end = read_decimal(release, &major);
    if (*end == '.') read_decimal(end + 1, &minor);
    return major > 5 || (major == 5 && minor >= 18);
}

bool watchpoints_are_safe() {
    utsname kernel{};
    return kernel::call(SYS_uname, kernel::address(&kernel)) == 0 &&
           kernel_has_deferred_traps(kernel.release);
}

int Watchpoint::open(uint64_t data) {
    Attributes made = attributes(data, kDisabled);
    // An address must be given, and one of the program's own; it is not watched.
    made.breakpoint_type = static_cast<uint32_t>(On::store);
    made.breakpoint_address = reinterpret_cast<uint64_t>(this) & ~uint64_t{7};
    made.breakpoint_length = 8;
    const long opened =
        kernel::call(SYS_perf_event_open, kernel::address(&made), 0, -1, -1, kCloseOnExec);
    if (opened < 0) return static_cast<int>(-opened);
    fd_ = out_of_the_way(static_cast<int>(opened));
    data_ = data;
    if (kernel::call(SYS_ioctl, fd_, kGetId, kernel::address(&id_)) == 0) return 0;
    kernel::call(SYS_close, fd_);
    fd_ = -1;
    return EINVAL;
}

bool Watchpoint::is_ours() const {
    uint64_t id = 0;
    return fd_ >= 0 && kernel::call(SYS_ioctl, fd_, kGetId, kernel::address(&id)) == 0 && id == id_;
}

bool Watchpoint::arm(On on, uint64_t address, uint32_t size) {
    if (!is_ours()) return false;
    Attributes made = attributes(data_, 0);
    made.breakpoint_type = static_cast<uint32_t>(on);
    made.breakpoint_address = address;
    made.breakpoint_length = size;
    armed_ = kernel::call(SYS_ioctl, fd_, kModifyAttributes, kernel::address(&made)) == 0;
    return armed_;
}

bool Watchpoint::disarm() {
    armed_ = false;
    return is_ours() && kernel::call(SYS_ioctl, fd_, kDisable, 0) == 0;
}

void Watchpoint::close() {
    if (is_ours()) kernel::call(SYS_close, fd_);
    fd_ = -1;
    armed_ = false;
}

}  // namespace tachograph

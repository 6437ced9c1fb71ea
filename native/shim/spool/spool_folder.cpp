#include "spool/spool_folder.h"

#include "base/kernel.h"
#include "spool/settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tachograph::spool_folder {
namespace {

constexpr size_t kMostPath = 600;

// The setting "place", which is DEVICE:INODE of the spool; without it every folder will do.
bool is_the_spool(const struct stat& status) {
    const char* const text = settings::options().place.data;
    if (!text) return true;
    char* end = nullptr;
    const uint64_t device = strtoull(text, &end, 10);
    return *end == ':' && status.st_dev == device &&
           status.st_ino == strtoull(end + 1, nullptr, 10);
}

// The folder of a path, by a descriptor where there is one left.
class Folder {
  public:
    explicit Folder(const char* path) : name_(path) {
        const char* slash = strrchr(path, '/');
        const auto length = slash ? static_cast<size_t>(slash - path) : kMostPath;
        char folder[kMostPath];
        if (length >= sizeof folder) return;
        memcpy(folder, path, length);
        folder[length] = 0;
        struct stat status{};
        fd_ = kernel::call(SYS_openat, AT_FDCWD, kernel::address(folder),
                           O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd_ >= 0) {
            name_ = slash + 1;
            known_ = kernel::call(SYS_fstat, fd_, kernel::address(&status)) == 0;
        } else if (fd_ == -EMFILE || fd_ == -ENFILE) {
            // One descriptor may still be had: the file itself, by its path.
            fd_ = AT_FDCWD;
            known_ = kernel::call(SYS_newfstatat, AT_FDCWD, kernel::address(folder),
                                  kernel::address(&status), AT_SYMLINK_NOFOLLOW) == 0;
        } else {
            error_ = fd_;
        }
        known_ = known_ && is_the_spool(status);
    }
    ~Folder() {
        if (fd_ >= 0) kernel::call(SYS_close, fd_);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    // 0, or the negative errno because of which nothing is to be done in it.
    long error() const { return known_ ? 0 : error_; }
    long fd() const { return fd_; }
    const char* name() const { return name_; }

  private:
    const char* name_;
    long fd_ = AT_FDCWD;
    long error_ = -ENOENT;
    bool known_ = false;
};

}  // namespace

long open(const char* path, int flags) {
    const Folder folder(path);
    if (folder.error() != 0) return folder.error();
    return kernel::call(SYS_openat, folder.fd(), kernel::address(folder.name()),
                        flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void remove(const char* path) {
    const Folder folder(path);
    if (folder.error() == 0)
        kernel::call(SYS_unlinkat, folder.fd(), kernel::address(folder.name()), 0);
}

}  // namespace tachograph::spool_folder

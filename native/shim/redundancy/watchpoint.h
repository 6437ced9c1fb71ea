// One hardware watchpoint of the calling thread (perf_event_open(2), type breakpoint), which sends
// it SIGTRAP right after an instruction that has accessed the bytes. Opened once; to arm it is one
// system call of about 2 us, safe in a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tachograph {

// Whether a trap that meets a thread which blocks SIGTRAP, as the C library does for moments, waits
// until that is over (Linux 5.18): on earlier kernels it would end the program.
bool watchpoints_are_safe();
// By a kernel's release, such as "6.1.0-13-amd64".
bool kernel_has_deferred_traps(const char* release);

class Watchpoint {
  public:
    enum class On : uint32_t { store = 2, any = 3 };  // x86 has none for loads alone

    // `data` comes with each trap. 0 or an errno; ENOSPC: all of the machine's are taken.
    int open(uint64_t data);
    bool is_open() const { return fd_ >= 0; }
    // `size` is 1, 2, 4 or 8, and `address` a multiple of it. False: the descriptor is not ours any
    // more (the program has closed it).
    bool arm(On on, uint64_t address, uint32_t size);
    bool disarm();
    bool armed() const { return armed_; }
    // Nothing that the program has put in the descriptor's place is closed.
    void close();

  private:
    bool is_ours() const;

    int fd_ = -1;
    bool armed_ = false;
    uint64_t id_ = 0;
    uint64_t data_ = 0;
};

}  // namespace tachograph

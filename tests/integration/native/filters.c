// Lets a process do next to nothing: whatever a recorder would ask of the kernel ends it.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(call)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int enter(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(access),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mprotect),
        ALLOW(mremap),
        ALLOW(brk),
        ALLOW(futex),
        ALLOW(exit),
        ALLOW(exit_group),
        ALLOW(rt_sigaction),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigprocmask),
        ALLOW(clock_gettime),
        ALLOW(clock_nanosleep),
        ALLOW(madvise),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof rules / sizeof rules[0], rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

#include "base/safe_read.h"

#include "base/kernel.h"

#include <sys/uio.h>
#include <cerrno>
#include <cstring>
#include <initializer_list>

// Few instructions of each can fault, and each of those is known.
extern "C" int tachograph_guarded_copy(void* to, const void* from, size_t size);
extern "C" const char tachograph_guarded_copy_at[];
extern "C" const char tachograph_guarded_copy_word_at[];
extern "C" const char tachograph_guarded_copy_pair_at[];
extern "C" const char tachograph_guarded_copy_last_word_at[];
extern "C" const char tachograph_guarded_copy_last_pair_at[];
extern "C" const char tachograph_guarded_copy_failed[];
extern "C" int tachograph_guarded_load(uint64_t* to, uint64_t from);
extern "C" const char tachograph_guarded_load_at[];

// What is read of an interpreter is a few words, nearly always, and `rep movsb` takes longer to
// begin than to copy those. The last word is copied from its end, and may be copied twice over in
// part.
__asm__(R"(
    .text
    .globl tachograph_guarded_copy
    .hidden tachograph_guarded_copy
    .globl tachograph_guarded_copy_at
    .hidden tachograph_guarded_copy_at
    .globl tachograph_guarded_copy_word_at
    .hidden tachograph_guarded_copy_word_at
    .globl tachograph_guarded_copy_pair_at
    .hidden tachograph_guarded_copy_pair_at
    .globl tachograph_guarded_copy_last_word_at
    .hidden tachograph_guarded_copy_last_word_at
    .globl tachograph_guarded_copy_last_pair_at
    .hidden tachograph_guarded_copy_last_pair_at
    .globl tachograph_guarded_copy_failed
    .hidden tachograph_guarded_copy_failed
    .type tachograph_guarded_copy, @function
tachograph_guarded_copy:
    .cfi_startproc
    cmpq $8, %rdx
    jb 4f
    cmpq $256, %rdx
    ja 4f
    cmpq $16, %rdx
    jb 2f
    leaq -16(%rdx), %rax
    xorl %ecx, %ecx
1:
tachograph_guarded_copy_pair_at:
    movups (%rsi,%rcx), %xmm0
    movups %xmm0, (%rdi,%rcx)
    addq $16, %rcx
    cmpq %rax, %rcx
    jb 1b
tachograph_guarded_copy_last_pair_at:
    movups (%rsi,%rax), %xmm0
    movups %xmm0, (%rdi,%rax)
    movl $1, %eax
    ret
2:
tachograph_guarded_copy_word_at:
    movq (%rsi), %rax
    movq %rax, (%rdi)
tachograph_guarded_copy_last_word_at:
    movq -8(%rsi,%rdx), %rax
    movq %rax, -8(%rdi,%rdx)
    movl $1, %eax
    ret
4:
    movq %rdx, %rcx
tachograph_guarded_copy_at:
    rep movsb
    movl $1, %eax
    ret
tachograph_guarded_copy_failed:
    xorl %eax, %eax
    ret
    .cfi_endproc
    .size tachograph_guarded_copy, .-tachograph_guarded_copy

    .globl tachograph_guarded_load
    .hidden tachograph_guarded_load
    .globl tachograph_guarded_load_at
    .hidden tachograph_guarded_load_at
    .type tachograph_guarded_load, @function
tachograph_guarded_load:
    .cfi_startproc
tachograph_guarded_load_at:
    movq (%rsi), %rax
    movq %rax, (%rdi)
    movl $1, %eax
    ret
    .cfi_endproc
    .size tachograph_guarded_load, .-tachograph_guarded_load
)");

// Where each `peek` reads, and where it goes on; both from where they stand. What the linker has at
// both ends of their section.
struct GuardedRead {
    int32_t at;
    int32_t next;
};
extern "C" __attribute__((visibility("hidden"))) const GuardedRead __start_tachograph_guarded[];
extern "C" __attribute__((visibility("hidden"))) const GuardedRead __stop_tachograph_guarded[];

namespace tachograph::safe_read {
namespace {

uintptr_t from_where_it_stands(const int32_t& distance) {
    return reinterpret_cast<uintptr_t>(&distance) + static_cast<uintptr_t>(intptr_t{distance});
}

// initial-exec: no allocation on first use, so it may be touched in a signal handler
__thread bool t_kernel __attribute__((tls_model("initial-exec"))) = false;
}  // namespace

void use_kernel(bool yes) { t_kernel = yes; }
bool kernel_chosen() { return t_kernel; }

bool copy(void* to, const void* from, size_t size) {
    if (reinterpret_cast<uintptr_t>(from) < 4096) return false;
    if (!t_kernel) return tachograph_guarded_copy(to, from, size) != 0;
    iovec local{to, size};
    iovec remote{const_cast<void*>(from), size};
    return kernel::call(SYS_process_vm_readv, kernel::getpid(), kernel::address(&local), 1,
                        kernel::address(&remote), 1, 0) == static_cast<long>(size);
}

bool readable(uintptr_t address) {
    constexpr long kNoSuchWay = -1;
    constexpr size_t kMask = 8;
    // The kernel reads the mask before it refuses what is to be done with it.
    return kernel::call(SYS_rt_sigprocmask, kNoSuchWay, static_cast<long>(address & ~(kMask - 1)),
                        0, kMask) == -EINVAL;
}

bool copy_checked(void* to, const void* from, size_t size) {
    constexpr uintptr_t kPage = 4096;
    const auto begin = reinterpret_cast<uintptr_t>(from);
    if (begin < kPage || size == 0) return false;
    for (uintptr_t at = begin; at < begin + size; at = (at & ~(kPage - 1)) + kPage)
        if (!readable(at)) return false;
    memcpy(to, from, size);
    return true;
}

bool load(uint64_t* to, uint64_t from) {
    if (t_kernel) return copy(to, reinterpret_cast<const void*>(from), sizeof *to);
    return from >= 4096 && tachograph_guarded_load(to, from) != 0;
}

uintptr_t recovery(uintptr_t pc) {
    for (const char* const at :
         {tachograph_guarded_copy_at, tachograph_guarded_copy_word_at,
          tachograph_guarded_copy_pair_at, tachograph_guarded_copy_last_word_at,
          tachograph_guarded_copy_last_pair_at, tachograph_guarded_load_at})
        if (pc == reinterpret_cast<uintptr_t>(at))
            return reinterpret_cast<uintptr_t>(tachograph_guarded_copy_failed);
    for (const GuardedRead* read = __start_tachograph_guarded; read < __stop_tachograph_guarded;
         ++read)
        if (pc == from_where_it_stands(read->at)) return from_where_it_stands(read->next);
    return 0;
}

}  // namespace tachograph::safe_read

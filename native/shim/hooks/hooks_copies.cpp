// Hooks of memcpy and its relatives: libc's own code does the copying, always.
// Compiled so that nothing in here becomes a call of memcpy again.
#include "arch/memory.h"
#include "copies/copies.h"
#include "hooks/interposed.h"

#include <dlfcn.h>

#define TG_CALLER __builtin_return_address(0)

using namespace tachograph;

namespace {

using Move = void* (*)(void*, const void*, size_t);
using Checked = void* (*)(void*, const void*, size_t, size_t);

// Before libc's are known: correct, and fast enough for the few calls of that time.
void* plain_move(void* to, const void* from, size_t size) {
    if (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from) >= size)
        arch::copy_up(to, from, size);
    else
        arch::copy_down(to, from, size);
    return to;
}

void* plain_move_behind(void* to, const void* from, size_t size) {
    return static_cast<uint8_t*>(plain_move(to, from, size)) + size;
}

struct Real {
    // memmove for memcpy as well: on x86-64 they are the same code, and a program that was linked
    // against a memcpy of before 2.14 may count on its way with overlapping ranges.
    Move move = plain_move;
    Move move_behind = plain_move_behind;
    Checked memcpy_checked = nullptr;
    Checked memmove_checked = nullptr;
    Checked mempcpy_checked = nullptr;
};
constinit Real g;

template <typename F>
void find(F* place, const char* name) {
    if (void* symbol = dlsym(RTLD_NEXT, name)) *place = reinterpret_cast<F>(symbol);
}

__attribute__((constructor)) void look_up() {
    find(&g.memcpy_checked, "__memcpy_chk");
    find(&g.memmove_checked, "__memmove_chk");
    find(&g.mempcpy_checked, "__mempcpy_chk");
    find(&g.move_behind, "mempcpy");
    find(&g.move, "memmove");
}

// Apart, so that short copies, which are most of them, are passed on before a register is saved.
__attribute__((noinline)) void* counted(Move move, void* to, const void* from, size_t size,
                                        const void* caller) {
    copies::count(size, caller);
    return move(to, from, size);
}

inline __attribute__((always_inline)) void* pass(Move move, void* to, const void* from, size_t size,
                                                 const void* caller) {
    if (__builtin_expect(size < copies::kShortest, 1)) return move(to, from, size);
    return counted(move, to, from, size, caller);
}

}  // namespace

TG_EXPORT void* memcpy(void* to, const void* from, size_t size) {
    return pass(g.move, to, from, size, TG_CALLER);
}

TG_EXPORT void* memmove(void* to, const void* from, size_t size) {
    return pass(g.move, to, from, size, TG_CALLER);
}

TG_EXPORT void* mempcpy(void* to, const void* from, size_t size) {
    return pass(g.move_behind, to, from, size, TG_CALLER);
}

TG_EXPORT void* __memcpy_chk(void* to, const void* from, size_t size, size_t room) {
    if (size > room) return g.memcpy_checked(to, from, size, room);
    return pass(g.move, to, from, size, TG_CALLER);
}

TG_EXPORT void* __memmove_chk(void* to, const void* from, size_t size, size_t room) {
    if (size > room) return g.memmove_checked(to, from, size, room);
    return pass(g.move, to, from, size, TG_CALLER);
}

TG_EXPORT void* __mempcpy_chk(void* to, const void* from, size_t size, size_t room) {
    if (size > room) return g.mempcpy_checked(to, from, size, room);
    return pass(g.move_behind, to, from, size, TG_CALLER);
}

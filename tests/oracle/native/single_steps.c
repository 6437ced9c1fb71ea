/* An exhaustive tracer: calls a function of a library with the processor's trap flag set, and
 * writes down each access to memory that its instructions make, with the value that was met or
 * left. What an instruction accesses is told by a table that objdump's output was made into. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { NONE = 255, READS = 1, WRITES = 2 };

struct operand {
    uint64_t offset; /* of the instruction in the library */
    int64_t displacement;
    uint8_t base, index; /* as REG_* of ucontext.h; NONE */
    uint8_t scale, what;
    uint32_t unused;
};

struct access {
    uint64_t address, value, offset;
    uint32_t what, context;
};

static struct {
    const struct operand* operands;
    long operand_count;
    struct access* accesses;
    long most, count, steps, lost;
    uint64_t begin;
    struct access pending; /* a store whose value is there after the instruction */
    int is_pending;
    uint32_t context;
} g;

static void write_down(struct access access) {
    memcpy(&access.value, (const void*)access.address, sizeof access.value);
    if (g.count < g.most)
        g.accesses[g.count++] = access;
    else
        ++g.lost;
}

static const struct operand* find(uint64_t offset) {
    long low = 0, high = g.operand_count;
    while (low < high) {
        const long middle = (low + high) / 2;
        if (g.operands[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < g.operand_count && g.operands[low].offset == offset ? &g.operands[low] : NULL;
}

static void on_step(int number, siginfo_t* info, void* raw) {
    (void)number;
    (void)info;
    const greg_t* registers = ((ucontext_t*)raw)->uc_mcontext.gregs;
    ++g.steps;
    if (g.is_pending) {
        g.is_pending = 0;
        write_down(g.pending);
    }
    const uint64_t offset = (uint64_t)registers[REG_RIP] - g.begin;
    const struct operand* operand = find(offset);
    if (!operand) return;
    struct access access = {0, 0, offset, 0, g.context};
    access.address = (uint64_t)operand->displacement;
    if (operand->base != NONE) access.address += (uint64_t)registers[operand->base];
    if (operand->index != NONE)
        access.address += (uint64_t)registers[operand->index] * operand->scale;
    if (operand->what & READS) {
        access.what = READS;
        write_down(access);
    }
    if (operand->what & WRITES) {
        access.what = WRITES;
        g.pending = access;
        g.is_pending = 1;
    }
}

int steps_prepare(const struct operand* operands, long operand_count, uint64_t begin,
                  struct access* accesses, long most) {
    g.operands = operands;
    g.operand_count = operand_count;
    g.begin = begin;
    g.accesses = accesses;
    g.most = most;
    struct sigaction action = {0};
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGTRAP, &action, NULL);
}

static void trap_flag(int on) {
    if (on)
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    else
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

uint64_t steps_call(uint64_t (*function)(void*, void*, long, uint64_t), void* cells, void* other,
                    long count, uint64_t value, uint32_t context) {
    g.context = context;
    trap_flag(1);
    const uint64_t result = function(cells, other, count, value);
    trap_flag(0);
    return result;
}

long steps_count(void) { return g.count; }
long steps_taken(void) { return g.steps; }
long steps_lost(void) { return g.lost; }

/* What others do to the allocators of a program while it is recorded: a library for ctypes.PyDLL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* PyMemAllocatorEx, and the functions of Python's C API that take it. */
struct allocator {
    void* context;
    void* (*malloc)(void*, size_t);
    void* (*calloc)(void*, size_t, size_t);
    void* (*realloc)(void*, void*, size_t);
    void (*free)(void*, void*);
};
extern void PyMem_GetAllocator(int domain, struct allocator* allocator);
extern void PyMem_SetAllocator(int domain, struct allocator* allocator);
extern void* PyObject_Malloc(size_t);
extern void* PyObject_Realloc(void*, size_t);
extern void PyObject_Free(void*);
enum { RAW, MEM, OBJ };

/* A block at the end of a mapping of its own, in front of which nothing can be read. Calls by
 * number are met by no hook. Its size stands in front of it. */
enum { PAGE = 4096, HEADER = 16 };
static uintptr_t begin_of(void* block) {
    return ((uintptr_t)block - HEADER) & ~(uintptr_t)(PAGE - 1);
}
static void* map_block(size_t size) {
    const size_t whole = (size + HEADER + PAGE - 1) / PAGE * PAGE;
    char* all = (char*)syscall(SYS_mmap, 0L, whole + 8 * PAGE, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
    if (all == MAP_FAILED) return NULL;
    /* As far behind a multiple of 16 KiB as can be: what a pool would have there is not mapped. */
    char* begin = (char*)(((uintptr_t)all + 4 * PAGE - 1) / (4 * PAGE) * (4 * PAGE) + 3 * PAGE);
    syscall(SYS_mprotect, begin, whole, PROT_READ | PROT_WRITE);
    *(size_t*)begin = size;
    return begin + HEADER;
}
static size_t size_of(void* block) { return ((size_t*)block)[-2]; }
static void unmap_block(void* block) {
    const size_t whole = (size_of(block) + HEADER + PAGE - 1) / PAGE * PAGE;
    syscall(SYS_mprotect, begin_of(block), whole, PROT_NONE);
}

static struct allocator before;

/* All blocks that are as large as this, or larger; blocks of such allocators are known by where
 * they lie. */
static size_t least;
enum { MOST = 1 << 16 };
static void* mapped[MOST];
static size_t count;
static int is_mapped(void* block) {
    for (size_t i = 0; i < count; ++i)
        if (mapped[i] == block) return 1;
    return 0;
}
static void forget(void* block) {
    for (size_t i = 0; i < count; ++i)
        if (mapped[i] == block) mapped[i] = mapped[--count];
}
static void* take(void* context, size_t size) {
    (void)context;
    if (size < least || count == MOST) return before.malloc(before.context, size);
    void* block = map_block(size);
    if (block) mapped[count++] = block;
    return block;
}
static void* take_zeroed(void* context, size_t number, size_t size) {
    if (number * size < least) return before.calloc(before.context, number, size);
    return take(context, number * size);
}
static void give(void* context, void* block) {
    (void)context;
    if (!block || !is_mapped(block)) return before.free(before.context, block);
    forget(block);
    unmap_block(block);
}
static void* move(void* context, void* block, size_t size) {
    if (!block) return take(context, size);
    if (!is_mapped(block) && size < least) return before.realloc(before.context, block, size);
    void* moved = take(context, size);
    if (!moved) return NULL;
    /* What is not ours is smaller than the least of ours. */
    const size_t old = is_mapped(block) ? size_of(block) : least;
    memcpy(moved, block, old < size ? old : size);
    give(context, block);
    return moved;
}

/* Another allocator for large blocks of the RAW domain, as an embedding program may set it. */
void replace_raw(void) {
    least = 100000;
    PyMem_GetAllocator(RAW, &before);
    struct allocator ours = {NULL, take, take_zeroed, move, give};
    PyMem_SetAllocator(RAW, &ours);
}

/* Calls an allocator as an unwrapped one would be: with no context. Modules compiled by Nuitka do.
 */
int call_without_context(int domain) {
    struct allocator found;
    PyMem_GetAllocator(domain, &found);
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
        void* block = found.malloc(NULL, size);
        if (!block) return 0;
        memset(block, 1, size);
        block = found.realloc(NULL, block, 2 * size);
        if (!block || ((char*)block)[size - 1] != 1) return 0;
        found.free(NULL, block);
        block = found.calloc(NULL, 3, size);
        if (!block || ((char*)block)[3 * size - 1] != 0) return 0;
        found.free(NULL, block);
    }
    return 1;
}

/* Functions of others in the import tables of all that is loaded, as memory profilers put theirs
 * there. */
static void* other_malloc(size_t size) {
    void* block = size < 600 ? NULL : take(NULL, size);
    static void* (*next)(size_t);
    if (!next) next = (void* (*)(size_t))dlsym(dlopen("libc.so.6", RTLD_LAZY), "malloc");
    return block ? block : next(size);
}
static void other_free(void* block) {
    static void (*next)(void*);
    if (!next) next = (void (*)(void*))dlsym(dlopen("libc.so.6", RTLD_LAZY), "free");
    if (!is_mapped(block)) return next(block);
    forget(block);
    unmap_block(block);
}
static void* other_realloc(void* block, size_t size) {
    static void* (*next)(void*, size_t);
    if (!next) next = (void* (*)(void*, size_t))dlsym(dlopen("libc.so.6", RTLD_LAZY), "realloc");
    if (block && !is_mapped(block)) return next(block, size);
    if (!block) return other_malloc(size);
    void* moved = other_malloc(size);
    if (moved) memcpy(moved, block, size_of(block) < size ? size_of(block) : size);
    if (moved) other_free(block);
    return moved;
}
static void* other_calloc(size_t number, size_t size) {
    void* block = other_malloc(number * size);
    if (block) memset(block, 0, number * size);
    return block;
}
static const struct {
    const char* name;
    void* function;
} others[] = {{"malloc", other_malloc},
              {"free", other_free},
              {"realloc", other_realloc},
              {"calloc", other_calloc}};

static void replace(uintptr_t base, const Elf64_Rela* entries, size_t size,
                    const Elf64_Sym* symbols, const char* names) {
    for (size_t i = 0; i < size / sizeof *entries; ++i) {
        const unsigned kind = ELF64_R_TYPE(entries[i].r_info);
        if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) continue;
        const char* name = names + symbols[ELF64_R_SYM(entries[i].r_info)].st_name;
        for (size_t o = 0; o < sizeof others / sizeof *others; ++o) {
            if (strcmp(name, others[o].name) != 0) continue;
            void** place = (void**)(base + entries[i].r_offset);
            mprotect((void*)((uintptr_t)place & ~(uintptr_t)(PAGE - 1)), PAGE,
                     PROT_READ | PROT_WRITE);
            *place = others[o].function;
        }
    }
}
static int look(struct dl_phdr_info* info, size_t size, void* data) {
    (void)size;
    const char* wanted = (const char*)data;
    /* The interpreter alone: the program, or libpython. */
    if (info->dlpi_name[0] != 0 && !strstr(info->dlpi_name, wanted)) return 0;
    const Elf64_Rela *plt = NULL, *rela = NULL;
    const Elf64_Sym* symbols = NULL;
    const char* names = NULL;
    size_t plt_size = 0, rela_size = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        for (const Elf64_Dyn* at = (const Elf64_Dyn*)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
             at->d_tag; ++at) {
            if (at->d_tag == DT_JMPREL) plt = (const Elf64_Rela*)at->d_un.d_ptr;
            if (at->d_tag == DT_PLTRELSZ) plt_size = at->d_un.d_val;
            if (at->d_tag == DT_RELA) rela = (const Elf64_Rela*)at->d_un.d_ptr;
            if (at->d_tag == DT_RELASZ) rela_size = at->d_un.d_val;
            if (at->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym*)at->d_un.d_ptr;
            if (at->d_tag == DT_STRTAB) names = (const char*)at->d_un.d_ptr;
        }
    }
    if (!symbols || !names) return 0;
    if (plt) replace(info->dlpi_addr, plt, plt_size, symbols, names);
    if (rela) replace(info->dlpi_addr, rela, rela_size, symbols, names);
    return 0;
}
void replace_imports(void) {
    least = 600;
    dl_iterate_phdr(look, (void*)"libpython");
}

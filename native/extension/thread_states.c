// Where CPython keeps the state of the calling thread.
#include "compat_internal.h"

#include "arch/processor.h"

#include <dlfcn.h>
#include <link.h>

#if PY_VERSION_HEX >= 0x030C0000
// Since 3.12 the attached thread state is a thread-local variable, since 3.15 the GIL state's too.
// The interpreter's own functions for them may call __tls_get_addr, which allocates and locks; so
// they are read from where they lie: an offset from the thread pointer, or, of a library that was
// loaded late, from the block that the thread has for it.
struct place {
    int known;
    ptrdiff_t at;
};
static struct place current_at;
static struct place gilstate_at;
static size_t late_module;  // the loader's number of a library that was loaded late, else 0
static int (*read_guarded)(void* to, const void* from, size_t size);

// A thread's blocks by module, as glibc keeps them (sysdeps/generic/dl-dtv.h). The one before the
// first says how many there are.
struct slot {
    uintptr_t value;
    void* to_free;
};

// The block of the library that was loaded late; NULL if this thread has none yet, and so has not
// been in the interpreter. Guarded: the loader may be exchanging the table just now.
static char* late_block(void) {
    const uintptr_t unallocated = UINTPTR_MAX;
    const struct slot* slots =
        *(const struct slot**)(void*)(tg_thread_pointer() + TG_THREAD_BLOCKS);
    struct slot slot;
    if (!read_guarded(&slot, slots - 1, sizeof slot) || late_module > slot.value) return NULL;
    if (!read_guarded(&slot, slots + late_module, sizeof slot)) return NULL;
    return slot.value == unallocated ? NULL : (char*)slot.value;
}

static PyThreadState* thread_local_at(struct place place) {
    PyThreadState* found = NULL;
    if (!place.known) return NULL;
    if (!late_module) return *(PyThreadState**)(void*)(tg_thread_pointer() + place.at);
    const char* block = late_block();
    return block && read_guarded(&found, block + place.at, sizeof found) ? found : NULL;
}

struct block {
    char* data;  // the calling thread's thread-local variables of the interpreter's library
    size_t size;
    size_t module;
};

static int find_block(struct dl_phdr_info* info, size_t size, void* context) {
    struct block* block = context;
    const ElfW(Phdr)* locals = NULL;
    int ours = 0;
    if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data) return 1;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)* part = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (uintptr_t)&_PyRuntime - start < part->p_memsz) ours = 1;
        if (part->p_type == PT_TLS) locals = part;
    }
    if (!ours) return 0;
    if (locals && info->dlpi_tls_data)
        *block = (struct block){info->dlpi_tls_data, locals->p_memsz, info->dlpi_tls_modid};
    return 1;
}

// Whether every thread has it at the same offset: not so where the library was loaded late.
static int is_static(const char* data) {
    void (*sizes)(size_t*, size_t*);
    void* symbol = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
    size_t size = 0;
    size_t alignment = 0;
    if (!symbol) return 0;
    memcpy(&sizes, &symbol, sizeof sizes);
    sizes(&size, &alignment);
    return (size_t)(tg_thread_pointer() - data) <= size;
}

void tg_find_thread_locals(int (*read)(void* to, const void* from, size_t size)) {
    enum { most = 64 };
    ptrdiff_t found[most];
    size_t count = 0;
    struct block block = {NULL, 0, 0};
    const PyThreadState* attached = TG_ATTACHED();
    current_at = gilstate_at = (struct place){0, 0};
    read_guarded = read;
    dl_iterate_phdr(find_block, &block);
    if (!block.data) return;
    late_module = is_static(block.data) ? 0 : block.module;
    // The loader's table may be another one than we know.
    if (late_module && late_block() != block.data) return;
    const char* base = late_module ? block.data : tg_thread_pointer();
    for (char* at = block.data; at + sizeof attached <= block.data + block.size && count < most;
         at += sizeof attached)
        if (*(PyThreadState**)(void*)at == attached) found[count++] = at - base;
    // The one that is empty while the thread is detached. One alone, or none is taken.
    PyThreadState* saved = PyEval_SaveThread();
    size_t emptied = 0;
    for (size_t i = 0; i < count; ++i) {
        const struct place place = {1, found[i]};
        const PyThreadState* now = thread_local_at(place);
        if (!now && emptied++ == 0) current_at = place;
        if (now == attached) gilstate_at = place;
    }
    if (emptied != 1) current_at.known = 0;
    tg_restore_thread(saved);
}

static PyThreadState* gilstate(void) {
#if PY_VERSION_HEX >= 0x030F0000
    return thread_local_at(gilstate_at);
#else
    return PyGILState_GetThisThreadState();  // of pthread_getspecific
#endif
}

int tg_own_thread_state_is_found(void) {
#if PY_VERSION_HEX >= 0x030F0000
    return gilstate_at.known;
#else
    return 1;
#endif
}

void* tg_own_thread_state(int* attached) {
    // Right in subinterpreters too, where the GILState one may not be.
    PyThreadState* current = thread_local_at(current_at);
    PyThreadState* own = current ? current : gilstate();
    *attached = current || (!current_at.known && own && own->_status.active);
    return own;
}

void* tg_running_thread_state(void) { return NULL; }
#else
void tg_find_thread_locals(int (*read)(void* to, const void* from, size_t size)) { (void)read; }

int tg_own_thread_state_is_found(void) { return 1; }

void* tg_own_thread_state(int* attached) {
    PyThreadState* own = PyGILState_GetThisThreadState();
    *attached = own && own == TG_ATTACHED();
    return own;
}

void* tg_running_thread_state(void) { return TG_ATTACHED(); }
#endif

#include "memory/import_tables.h"

#include "base/kernel.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

// What the linker has at both ends of this library.
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) char _end[];

namespace tachograph::import_tables {
namespace {

constexpr uintptr_t kPage = 4096;

struct Function {
    const char* name;
    const char* behind;  // what our hook calls
    uintptr_t hook = 0;
    uintptr_t real = 0;
};

struct State {
    // memmove for memcpy, as in hooks_copies.cpp.
    Function functions[16] = {
        {"malloc", "malloc"},
        {"calloc", "calloc"},
        {"realloc", "realloc"},
        {"reallocarray", "reallocarray"},
        {"free", "free"},
        {"posix_memalign", "posix_memalign"},
        {"aligned_alloc", "aligned_alloc"},
        {"memalign", "memalign"},
        {"valloc", "valloc"},
        {"pvalloc", "pvalloc"},
        {"memcpy", "memmove"},
        {"memmove", "memmove"},
        {"mempcpy", "mempcpy"},
        {"__memcpy_chk", "__memcpy_chk"},
        {"__memmove_chk", "__memmove_chk"},
        {"__mempcpy_chk", "__mempcpy_chk"},
    };
    bool known = false;
    bool passing = false;
};
constinit State g;

struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    bool holds(uintptr_t address) const { return address >= begin && address < end; }
};

Range own_image() {
    return {reinterpret_cast<uintptr_t>(__ehdr_start), reinterpret_cast<uintptr_t>(_end)};
}

// The parts of a loaded file that the loader fills its imports by.
struct Object {
    uintptr_t base = 0;
    Range image;
    Range read_only;  // after the loader has filled it
    bool writable = false;
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;

    bool open() {
        if (!writable && read_only.begin < read_only.end)
            writable = kernel::call(SYS_mprotect, static_cast<long>(read_only.begin),
                                    static_cast<long>(read_only.end - read_only.begin),
                                    PROT_READ | PROT_WRITE) == 0;
        return writable;
    }
    void close() {
        if (writable)
            kernel::call(SYS_mprotect, static_cast<long>(read_only.begin),
                         static_cast<long>(read_only.end - read_only.begin), PROT_READ);
        writable = false;
    }
};

Function* function_of(const char* name) {
    for (Function& function : g.functions)
        if (strcmp(name, function.name) == 0) return function.hook != 0 ? &function : nullptr;
    return nullptr;
}

void turn(Object* object, const ElfW(Rela) & import, bool pass) {
    const ElfW(Sym) & symbol = object->symbols[ELF64_R_SYM(import.r_info)];
    if (symbol.st_shndx != SHN_UNDEF) return;
    const Function* function = function_of(object->names + symbol.st_name);
    const uintptr_t at = object->base + import.r_offset;
    if (!function || !object->image.holds(at)) return;
    auto* slot = reinterpret_cast<uintptr_t*>(at);
    const uintptr_t now = __atomic_load_n(slot, __ATOMIC_RELAXED);
    // A function that was not called yet leads back into the file itself, and would become ours.
    const bool unbound =
        ELF64_R_TYPE(import.r_info) == R_X86_64_JUMP_SLOT && object->image.holds(now);
    if (now != (pass ? function->hook : function->real) && !(pass && unbound)) return;
    if (object->read_only.holds(at) && !object->open()) return;
    __atomic_store_n(slot, pass ? function->real : function->hook, __ATOMIC_RELEASE);
}

void turn_all(Object* object, uintptr_t table, size_t size, bool pass) {
    const auto* import = reinterpret_cast<const ElfW(Rela)*>(table);
    for (size_t i = 0; table != 0 && i < size / sizeof *import; ++i) {
        const auto type = ELF64_R_TYPE(import[i].r_info);
        if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) turn(object, import[i], pass);
    }
}

void turn_object(const dl_phdr_info& info, const ElfW(Phdr) & dynamic, Object* object, bool pass) {
    uintptr_t values[DT_JMPREL + 1] = {};
    uintptr_t relative = 0;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + dynamic.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag > 0 && entry->d_tag <= DT_JMPREL)
            values[entry->d_tag] = static_cast<uintptr_t>(entry->d_un.d_val);
        if (entry->d_tag == DT_RELACOUNT) relative = entry->d_un.d_val * sizeof(ElfW(Rela));
    }
    // The loader has made addresses of them, but not of those in the kernel's own library.
    for (const auto tag : {DT_SYMTAB, DT_STRTAB, DT_RELA, DT_JMPREL})
        if (values[tag] != 0 && !object->image.holds(values[tag])) return;
    object->symbols = reinterpret_cast<const ElfW(Sym)*>(values[DT_SYMTAB]);
    object->names = reinterpret_cast<const char*>(values[DT_STRTAB]);
    if (!object->symbols || !object->names) return;
    if (values[DT_RELA] != 0 && values[DT_RELASZ] > relative)
        turn_all(object, values[DT_RELA] + relative, values[DT_RELASZ] - relative, pass);
    if (values[DT_PLTREL] == DT_RELA)
        turn_all(object, values[DT_JMPREL], values[DT_PLTRELSZ], pass);
    object->close();
}

int visit(dl_phdr_info* info, size_t, void* data) {
    Object object;
    object.base = info->dlpi_addr;
    object.image = {UINTPTR_MAX, 0};
    const ElfW(Phdr)* dynamic = nullptr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) & part = info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
        const uintptr_t end = begin + part.p_memsz;
        if (part.p_type == PT_DYNAMIC) dynamic = &part;
        // As the loader does it: a last page that is not whole stays writable.
        if (part.p_type == PT_GNU_RELRO) object.read_only = {begin & -kPage, end & -kPage};
        if (part.p_type != PT_LOAD) continue;
        if (begin < object.image.begin) object.image.begin = begin;
        if (end > object.image.end) object.image.end = end;
    }
    if (dynamic && !object.image.holds(own_image().begin))
        turn_object(*info, *dynamic, &object, *static_cast<const bool*>(data));
    return 0;
}

// Only functions whose first definition is ours have a hook.
void look_up() {
    g.known = true;
    if (getenv("LD_AUDIT") || getenv("LD_PROFILE")) return;
    for (Function& function : g.functions) {
        const auto first = reinterpret_cast<uintptr_t>(dlsym(RTLD_DEFAULT, function.name));
        if (!own_image().holds(first)) continue;
        function.real = reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, function.behind));
        if (function.real != 0) function.hook = first;
    }
}

void turn_everything(bool pass) {
    if (g.passing == pass) return;
    if (!g.known) look_up();
    g.passing = pass;
    dl_iterate_phdr(visit, &pass);
}

}  // namespace

void pass_hooks() { turn_everything(true); }
void meet_hooks() { turn_everything(false); }

}  // namespace tachograph::import_tables

#include "memory/import_tables.h"

#include "arch/processor.h"
#include "base/kernel.h"
#include "base/large_data.h"
#include "base/pages.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

// What the linker has at both ends of this library.
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[];
extern "C" __attribute__((visibility("hidden"))) char _end[];
// What is met in place of dlsym, below.
extern "C" __attribute__((visibility("hidden"))) void* tachograph_dlsym(void*, const char*);
extern "C" {
__attribute__((visibility("hidden"), used)) void* (*tachograph_real_dlsym)(void*,
                                                                           const char*) = nullptr;
}

namespace tachograph::import_tables {
namespace {

struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    void reach(uintptr_t address) {
        begin = end == 0 ? address : std::min(begin, address);
        end = std::max(end, address + 1);
    }
    bool holds(uintptr_t address) const { return address >= begin && address < end; }
};

// In a process of a recording all but those of `memory` are met for good.
enum class Group : uint8_t { memory, mappings, process, loading };

struct Function {
    const char* name;
    const char* behind;  // what our hook calls
    Group group = Group::memory;
    bool releases = false;
    uintptr_t hook = 0;
    uintptr_t real = 0;
};

struct State {
    // memmove for memcpy, as in hooks_copies.cpp.
    Function functions[47] = {
        {"malloc", "malloc"},
        {"calloc", "calloc"},
        {"realloc", "realloc", Group::memory, true},
        {"reallocarray", "reallocarray", Group::memory, true},
        {"free", "free", Group::memory, true},
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
        {"mmap", "mmap", Group::mappings},
        {"mmap64", "mmap64", Group::mappings},
        {"munmap", "munmap", Group::mappings},
        {"mremap", "mremap", Group::mappings},
        {"madvise", "madvise", Group::mappings},
        {"pthread_create", "pthread_create", Group::process},
        {"sigaction", "sigaction", Group::process},
        {"sigaltstack", "sigaltstack", Group::process},
        {"signal", "signal", Group::process},
        {"pthread_sigmask", "pthread_sigmask", Group::process},
        {"sigprocmask", "sigprocmask", Group::process},
        {"dlclose", "dlclose", Group::process},
        {"prctl", "prctl", Group::process},
        {"capset", "capset", Group::process},
        {"unshare", "unshare", Group::process},
        {"setns", "setns", Group::process},
        {"ptrace", "ptrace", Group::process},
        {"syscall", "syscall", Group::process},
        {"execve", "execve", Group::process},
        {"execv", "execv", Group::process},
        {"execvp", "execvp", Group::process},
        {"execvpe", "execvpe", Group::process},
        {"fexecve", "fexecve", Group::process},
        {"execveat", "execveat", Group::process},
        {"execl", "execl", Group::process},
        {"execlp", "execlp", Group::process},
        {"execle", "execle", Group::process},
        {"mlockall", "mlockall", Group::process},
        {"_exit", "_exit", Group::process},
        {"_Exit", "_Exit", Group::process},
        {"dlsym", "dlsym", Group::loading},
    };
    std::bitset<1 << 16> beginnings;  // of their names, two letters each
    Range real;                       // spans what they are without us
    bool known = false;
    bool passing = false;
    bool releases_met = true;  // when passing
    bool attached = false;
    bool lookups = false;  // of names are met, where this library was preloaded
    uint64_t loaded = 0;   // how many libraries had been loaded when all were looked at
};
constinit TG_LARGE_DATA State g;

Range own_image() {
    return {reinterpret_cast<uintptr_t>(__ehdr_start), reinterpret_cast<uintptr_t>(_end)};
}

// The parts of a loaded file that the loader fills its imports by.
struct Object {
    uintptr_t base = 0;
    Range image;
    Range read_only;  // after the loader has filled it
    bool writable = false;
    bool binds_globally = false;  // what is not bound yet will be the first definition of all
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

// C++ has hundreds of thousands of names in the libraries of one program, which all begin with _Z.
size_t beginning(const char* name) {
    const auto* letters = reinterpret_cast<const uint8_t*>(name);
    return letters[0] == 0 ? 0 : size_t{letters[0]} << 8 | letters[1];
}

Function* function_of(const char* name) {
    if (!g.beginnings[beginning(name)]) return nullptr;
    for (Function& function : g.functions)
        if (strcmp(name, function.name) == 0) return function.hook != 0 ? &function : nullptr;
    return nullptr;
}

// What is to be turned, and which way.
struct Turn {
    bool pass;
    bool memory;
    bool process;
    bool releases = true;  // pass as well
    bool loading = false;  // alone
    bool turns(Group group) const {
        if (loading) return group == Group::loading;
        return group == Group::memory || group == Group::mappings ? memory : process;
    }
};

void turn(Object* object, const ElfW(Rela) & import, const Turn& wanted) {
    const uintptr_t at = object->base + import.r_offset;
    if (!object->image.holds(at)) return;
    auto* slot = reinterpret_cast<uintptr_t*>(at);
    const uintptr_t now = __atomic_load_n(slot, __ATOMIC_RELAXED);
    // A function that was not called yet leads back into the file itself, and would become ours.
    const bool leads_back = ELF64_R_TYPE(import.r_info) == TG_JUMP_SLOT && object->image.holds(now);
    // The imports lie side by side, their names all over the file: most need none.
    if (!leads_back && !own_image().holds(now) && !g.real.holds(now)) return;
    const ElfW(Sym) & symbol = object->symbols[ELF64_R_SYM(import.r_info)];
    const Function* function = function_of(object->names + symbol.st_name);
    // The C library calls its own malloc through its table as well.
    const bool own = symbol.st_shndx != SHN_UNDEF;
    if (!function || !wanted.turns(function->group) ||
        (own && !(g.attached && function->group == Group::memory)))
        return;
    const bool pass = wanted.pass && (wanted.releases || !function->releases);
    const bool free = leads_back && !own &&
                      (wanted.loading || (g.attached ? !pass && object->binds_globally : pass));
    if (now != (pass ? function->hook : function->real) && !free) return;
    if (object->read_only.holds(at) && !object->open()) return;
    __atomic_store_n(slot, pass ? function->real : function->hook, __ATOMIC_RELEASE);
}

void turn_all(Object* object, uintptr_t table, size_t size, const Turn& wanted) {
    const auto* import = reinterpret_cast<const ElfW(Rela)*>(table);
    for (size_t i = 0; table != 0 && i < size / sizeof *import; ++i) {
        const auto type = ELF64_R_TYPE(import[i].r_info);
        if (type == TG_JUMP_SLOT || type == TG_GLOBAL_ADDRESS) turn(object, import[i], wanted);
    }
}

void turn_object(const dl_phdr_info& info, const ElfW(Phdr) & dynamic, Object* object,
                 const Turn& wanted) {
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
        turn_all(object, values[DT_RELA] + relative, values[DT_RELASZ] - relative, wanted);
    if (values[DT_PLTREL] == DT_RELA)
        turn_all(object, values[DT_JMPREL], values[DT_PLTRELSZ], wanted);
    object->close();
}

// Names of the libraries that the program was linked with, and of those that these were linked
// with: the loader looks for what they import where it looks for the program's.
class Linked {
  public:
    void add(const char* name) {
        if (count_ < kMost) names_[count_++] = file_of(name);
    }
    bool has(const char* path) const {
        for (size_t i = 0; i < count_; ++i)
            if (strcmp(names_[i], file_of(path)) == 0) return true;
        return false;
    }

  private:
    static constexpr size_t kMost = 128;
    static const char* file_of(const char* path) {
        const char* slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
    }
    const char* names_[kMost] = {};
    size_t count_ = 0;
};

void add_needed(const dl_phdr_info& info, const ElfW(Phdr) & dynamic, const Object& object,
                Linked* linked) {
    if (!object.names) return;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + dynamic.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry)
        if (entry->d_tag == DT_NEEDED) linked->add(object.names + entry->d_un.d_val);
}

Range image_of(const dl_phdr_info& info) {
    Range image{UINTPTR_MAX, 0};
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr) & part = info.dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        const uintptr_t begin = info.dlpi_addr + part.p_vaddr;
        if (begin < image.begin) image.begin = begin;
        if (begin + part.p_memsz > image.end) image.end = begin + part.p_memsz;
    }
    return image;
}

struct Visit {
    Turn turn;
    uint64_t loaded = 0;  // if not 0: only while it is still so many
    uintptr_t only = 0;   // if not 0: what holds this address
    bool complete = true;
    Linked linked{};
};

int visit(dl_phdr_info* info, size_t, void* data) {
    auto* visit = static_cast<Visit*>(data);
    if (visit->loaded != 0 && info->dlpi_adds != visit->loaded) {
        visit->complete = false;
        return 1;
    }
    Object object;
    object.base = info->dlpi_addr;
    object.image = image_of(*info);
    if (visit->only != 0 && !object.image.holds(visit->only)) return 0;
    // What needs a library is told of before it, the program first of all.
    const bool linked = info->dlpi_name[0] == 0 || visit->linked.has(info->dlpi_name);
    object.binds_globally = linked || strstr(info->dlpi_name, "/libpython");
    const ElfW(Phdr)* dynamic = nullptr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) & part = info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
        const uintptr_t end = begin + part.p_memsz;
        if (part.p_type == PT_DYNAMIC) dynamic = &part;
        // As the loader does it: a last page that is not whole stays writable.
        if (part.p_type == PT_GNU_RELRO)
            object.read_only = {pages::begin_of(begin), pages::begin_of(end)};
    }
    if (!dynamic || object.image.holds(own_image().begin)) return 0;
    turn_object(*info, *dynamic, &object, visit->turn);
    if (linked && g.attached) add_needed(*info, *dynamic, object, &visit->linked);
    return 0;
}

// In the order in which the loader looks for a definition that a program is linked with.
uintptr_t first_in_loaded(const char* name) {
    void* program = dlopen(nullptr, RTLD_LAZY);
    if (!program) return 0;
    const link_map* each = nullptr;
    if (dlinfo(program, RTLD_DI_LINKMAP, &each) != 0) each = nullptr;
    uintptr_t first = 0;
    for (; each && first == 0; each = each->l_next) {
        // The program itself, which defines no such function, has no name here.
        void* library = each->l_name[0] ? dlopen(each->l_name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
        if (!library) continue;
        // It may be that of a library that this one needs.
        void* found = dlsym(library, name);
        Dl_info info;
        const link_map* holder = nullptr;
        if (found &&
            dladdr1(found, &info, const_cast<void**>(reinterpret_cast<const void**>(&holder)),
                    RTLD_DL_LINKMAP) &&
            holder == each)
            first = reinterpret_cast<uintptr_t>(found);
        dlclose(library);
    }
    dlclose(program);
    return first;
}

// The first that the loader tells of is the program itself.
Range image_of_program() {
    Range image;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
            *static_cast<Range*>(to) = image_of(*info);
            return 1;
        },
        &image);
    return image;
}

// What imports of this name are bound to. A program at a fixed address that takes a function's
// address has an entry of its own for it, which dlsym finds although it is no definition: it leads
// on through the program's import table. (Debian's python3 has one for malloc and one for free.)
uintptr_t first_definition(const Range& program, const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    const auto first = reinterpret_cast<uintptr_t>(found);
    if (!program.holds(first)) return first;
    Dl_info info;
    const ElfW(Sym)* symbol = nullptr;
    if (!dladdr1(found, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
                 RTLD_DL_SYMENT) ||
        !symbol || symbol->st_shndx != SHN_UNDEF)
        return first;
    return first_in_loaded(name);
}

bool is_audited() { return getenv("LD_AUDIT") || getenv("LD_PROFILE"); }

void meet(Function* function, uintptr_t hook) {
    function->hook = hook;
    g.beginnings.set(beginning(function->name));
    g.real.reach(function->real);
}

// Only functions whose first definition is ours have a hook.
void look_up() {
    g.known = true;
    if (is_audited()) return;
    const Range program = image_of_program();
    for (Function& function : g.functions) {
        if (function.group != Group::memory) continue;
        const auto first = first_definition(program, function.name);
        if (!own_image().holds(first)) continue;
        function.real = reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, function.behind));
        if (function.real != 0) meet(&function, first);
    }
}

// Only functions whose first definition is the one that our hook calls have one.
void look_up_attached() {
    Dl_info own;
    if (is_audited() || !dladdr(&g, &own)) return;
    void* library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return;
    const Range program = image_of_program();
    for (Function& function : g.functions) {
        const auto ours = reinterpret_cast<uintptr_t>(dlsym(library, function.name));
        const auto first = first_definition(program, function.behind);
        const auto next = reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, function.behind));
        const bool loading = function.group == Group::loading;
        if (first == 0 || first != next || (!loading && !own_image().holds(ours))) continue;
        function.real = first;
        meet(&function, loading ? reinterpret_cast<uintptr_t>(&tachograph_dlsym) : ours);
    }
    tachograph_real_dlsym = &dlsym;
    dlclose(library);
}

// Of functions whose first definition is ours, if the next one is the one that our hook calls.
void look_up_lookups() {
    if (is_audited()) return;
    const Range program = image_of_program();
    for (Function& function : g.functions) {
        const bool loading = function.group == Group::loading;
        if (!loading && function.group != Group::process) continue;
        const auto first = first_definition(program, function.name);
        const auto next = reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, function.behind));
        if (next == 0 || (loading ? first != next : !own_image().holds(first))) continue;
        function.real = next;
        meet(&function, loading ? reinterpret_cast<uintptr_t>(&tachograph_dlsym) : first);
        g.lookups |= loading;
    }
    tachograph_real_dlsym = &dlsym;
}

// In all that is loaded, or in what holds an address.
void meet_lookups_in(uintptr_t only) {
    Visit lookups{{false, false, false, true, true}, 0, only};
    dl_iterate_phdr(visit, &lookups);
}

void turn_everything(bool pass, bool releases) {
    if (g.passing == pass && g.releases_met != releases) return;
    if (!g.known) look_up();
    g.passing = pass;
    g.releases_met = !releases;
    if (g.beginnings.none()) return;
    Visit memory{{pass, true, false, releases}};
    dl_iterate_phdr(visit, &memory);
}

// How many libraries have been loaded so far.
uint64_t count_loaded() {
    uint64_t count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
            *static_cast<uint64_t*>(to) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

// What is loaded is in the list before it is bound, and its tables are the loader's until then. The
// loader's lock is held meanwhile: who has waited for it finds whole what was in the list before.
void meet_all() {
    constexpr int kTries = 3;
    for (int tries = 0; tries < kTries; ++tries) {
        const uint64_t loaded = count_loaded();
        dlsym(RTLD_DEFAULT, "dlsym");  // waits for it
        Visit all{{false, !g.passing, true}, loaded};
        dl_iterate_phdr(visit, &all);
        if (!all.complete) continue;
        __atomic_store_n(&g.loaded, loaded, __ATOMIC_RELAXED);
        return;
    }
}

}  // namespace

void pass_hooks(bool all) { turn_everything(true, all); }
void meet_hooks() { turn_everything(false, false); }

void meet_lookups() {
    if (g.attached || g.lookups) return;
    look_up_lookups();
    if (g.lookups) meet_lookups_in(0);
}

void attach() {
    if (g.attached) return;
    look_up_attached();
    g.attached = g.known = g.passing = true;
    g.releases_met = false;
    meet_all();
}

void detach() {
    if (!g.attached) return;
    Visit all{{true, true, true}};
    dl_iterate_phdr(visit, &all);
    g.attached = false;
    g.passing = true;
    g.releases_met = false;
}

}  // namespace tachograph::import_tables

using namespace tachograph;

// Who has loaded a library looks for a function in it next: the Python interpreter, for example.
// And who looks for one of the C library's that we stand before (ctypes) gets ours, as from an
// import table. Null: what the C library says.
extern "C" __attribute__((visibility("hidden"), used)) void* tachograph_before_dlsym(
    void* handle, const char* name) {
    using namespace import_tables;
    if (!g.attached && !g.lookups) return nullptr;
    if (g.attached && count_loaded() != __atomic_load_n(&g.loaded, __ATOMIC_RELAXED)) meet_all();
    constexpr char kModule[] = "PyInit_";
    if (!g.attached && handle != RTLD_NEXT && name &&
        strncmp(name, kModule, sizeof kModule - 1) == 0) {
        // An extension module (ctypes, cffi) may look for functions by their names.
        void* module = tachograph_real_dlsym(handle, name);
        if (module) meet_lookups_in(reinterpret_cast<uintptr_t>(module));
        return module;
    }
    const Function* function = handle != RTLD_NEXT && name ? function_of(name) : nullptr;
    if (!function || function->group != Group::process) return nullptr;
    const auto found = reinterpret_cast<uintptr_t>(tachograph_real_dlsym(handle, name));
    return found == function->real ? reinterpret_cast<void*>(function->hook) : nullptr;
}

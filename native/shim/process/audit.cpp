#include "process/audit.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "memory/heap.h"
#include "process/native_only.h"
#include "process/python.h"
#include "spool/process_log.h"
#include "spool/settings.h"

#include <dlfcn.h>
#include <link.h>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace tachograph::audit {
namespace {

// CPython's own, unchanged since it came with 3.8.
struct Entry {
    Entry* next;
    int (*function)(const char*, void*, void*);
    void* data;
};

struct State {
    python::Api python;
    Entry** place = nullptr;  // where the interpreter keeps its first hook
    bool done = false;
};
constinit State g;

// Run by the interpreter that is about to be armed. There are no .pyc files of it: it may be of
// another version than ours.
constexpr char kProgram[] = R"(
home = home.replace("%0a", "\n").replace("%2c", ",").replace("%3a", ":").replace("%25", "%")
from _io import open_code
with open_code(home + "/inprocess/fallback_arm.py") as file:
    exec(compile(file.read(), home + "/inprocess/fallback_arm.py", "exec"))
begin(home, beside, record_natively, before_fork, after_fork_in_parent, after_fork_in_child)
)";

int hook(const char* event, void* arguments, void*);

// Not with process_vm_readv, which some containers forbid: a hook that is not found stays.
bool is_mapped(uintptr_t address, size_t size) {
    const uintptr_t first = pages::begin_of(address);
    unsigned char resident[2];
    return kernel::call(SYS_mincore, static_cast<long>(first),
                        static_cast<long>(address + size - first), kernel::address(resident)) == 0;
}

bool is_ours(const Entry* entry) { return entry->function == hook && entry->data == &g; }

struct Image {
    uintptr_t address;
    uintptr_t begin = 0;
    uintptr_t end = 0;
};

int find_image(dl_phdr_info* info, size_t, void* data) {
    auto* image = static_cast<Image*>(data);
    uintptr_t begin = UINTPTR_MAX;
    uintptr_t end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD) continue;
        const uintptr_t first = info->dlpi_addr + header.p_vaddr;
        if (first < begin) begin = first;
        if (first + header.p_memsz > end) end = first + header.p_memsz;
    }
    if (image->address < begin || image->address >= end) return 0;
    image->begin = begin;
    image->end = end;
    return 1;
}

// The interpreter's state holds nothing but pointers into its own image yet, and our hook.
Entry** find_place(void* runtime) {
    Dl_info info;
    void* symbol = nullptr;
    if (!dladdr1(runtime, &info, &symbol, RTLD_DL_SYMENT) || !symbol) return nullptr;
    Image image{reinterpret_cast<uintptr_t>(runtime)};
    dl_iterate_phdr(find_image, &image);
    auto* word = static_cast<uintptr_t*>(runtime);
    auto* end = word + static_cast<const ElfW(Sym)*>(symbol)->st_size / sizeof *word;
    for (; word < end; ++word) {
        const uintptr_t value = *word;
        if (value % alignof(Entry) != 0 || value < pages::kPiece) continue;
        if (value >= image.begin && value < image.end) continue;
        if (is_mapped(value, sizeof(Entry)) && is_ours(reinterpret_cast<const Entry*>(value)))
            return reinterpret_cast<Entry**>(word);
    }
    return nullptr;
}

// It is not freed: the interpreter may allocate otherwise by now, and is reading it.
void take_out() {
    for (Entry** place = g.place; place && *place; place = &(*place)->next) {
        if (!is_ours(*place)) continue;
        *place = (*place)->next;
        return;
    }
}

int arm() {
    const python::Api& python = g.python;
    const tg_text_option& home = settings::options().home;
    char folder[4096];
    char beside[600];
    if (home.length == 0 || home.length >= sizeof folder) return 0;
    memcpy(folder, home.data, home.length);
    folder[home.length] = 0;
    snprintf(beside, sizeof beside, "%s", settings::library());
    if (char* slash = strrchr(beside, '/')) *slash = 0;
    python::Globals globals(python);
    globals.set("home", folder);
    globals.set("beside", beside);
    native_only::offer(python, &globals);
    const int failed = globals.run(kProgram, "<tachograph>");
    if (failed > 0 && !settings::are_read_by_python()) {
        process_log::refused("this Python could not load the recorder's modules");
        heap::expect_nothing();
    }
    return failed < 0 ? -1 : 0;
}

// Where nothing is left of the interpreter's own start: the program's file, module or code is about
// to be run, or an embedding program does something. `site` may still bring tachograph.pth.
bool started(const char* event, void* arguments) {
    if (strncmp(event, "cpython.run_", 12) == 0) return true;
    if (g.python.frame()) return false;
    return strcmp(event, "import") != 0 || !g.python.first_is(arguments, "site");
}

int hook(const char* event, void* arguments, void*) {
    if (g.done) return 0;
    const bool last = strcmp(event, "cpython._PySys_ClearAuditHooks") == 0;
    const bool read = settings::are_read_by_python();
    if (!last && !read && (!g.python.is_initialized() || !started(event, arguments))) return 0;
    g.done = true;
    take_out();
    return last || read ? 0 : arm();
}

}  // namespace

bool watch() {
    if (!python::find(&g.python)) return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr;
    if (settings::options().home.length == 0 || g.python.add_audit_hook(hook, &g) != 0) return true;
    g.place = find_place(g.python.runtime);
    return true;
}

}  // namespace tachograph::audit

#include "referrers.h"

#include "compat.h"
#include "read_clock.h"

#include <Python.h>

#include <structmember.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cstring>
#include <initializer_list>
#include <string>

namespace tachograph::referrers {
namespace {

// CPU time of the search: on a busy machine it takes longer, as all that the program does.
constexpr int64_t kMostNs = 500'000'000;
constexpr uint32_t kMostObjects = 1 << 20;
constexpr uint32_t kMostRoots = 1 << 14;
constexpr size_t kMostTargets = 64;
constexpr size_t kMostLinks = 24;
constexpr size_t kMostText = 80;
constexpr uint32_t kAsked = 4096;      // objects between two looks at the clock
constexpr Py_ssize_t kMostBody = 256;  // bytes of an object that may point at a block of its own
constexpr Py_ssize_t kMostPassed = 1 << 22;    // items of a container on the way to one of them
constexpr uintptr_t kHeaders[] = {0, 16, 32};  // what may lie before an object in its block
constexpr uint32_t kRoot = uint32_t{1} << 31;
constexpr uint32_t kMarks = 4096;

// A module by its name, or a variable of a function.
struct Root {
    PyObject* name;
    PyObject* code;  // nullptr: it is a module
};

// An object whose references are looked at, and the one that led to it: a node, or a root.
struct Node {
    PyObject* object;
    uint32_t parent;
};

struct Target {
    tg_live_block block;
    PyObject* owner;  // nullptr: not found
    uint32_t parent;
};

// Room of the search, which is given back at its end. Not malloc's: that is the program's.
struct Room {
    Node nodes[kMostObjects];
    uint32_t places[2 * kMostObjects];  // number of a node + 1
    Root roots[kMostRoots];
    Target targets[kMostTargets];
    tg_live_block blocks[kMostTargets];
    uint8_t marks[kMarks];
};

uint32_t g_chains = 0;  // of this process, with the GIL

uint32_t mark_of(uintptr_t address) {
    return static_cast<uint32_t>(address >> 4 ^ address >> 16) % kMarks;
}

// Objects of these types refer to nothing, and have all that they hold in themselves.
bool holds_nothing(const PyTypeObject* type) {
    return type == &PyUnicode_Type || type == &PyLong_Type || type == &PyFloat_Type ||
           type == &PyBytes_Type || type == &PyBool_Type || type == Py_TYPE(Py_None);
}

// As the garbage collector would: it leaves alone what it does not track, as that may be in the
// making. Dicts and tuples of simple objects it does not track either.
bool is_traversed(PyObject* object) {
    return PyObject_IS_GC(object) && Py_TYPE(object)->tp_traverse &&
           (PyObject_GC_IsTracked(object) || PyDict_CheckExact(object) ||
            PyTuple_CheckExact(object));
}

class Search {
  public:
    Search(const tg_api* api, Room* room)
        : api_(api),
          room_(room),
          began_ns_(now()),
          began_cpu_ns_(read_clock(CLOCK_THREAD_CPUTIME_ID)) {}

    void run() {
        const size_t blocks = api_->live_blocks(room_->blocks, kMostTargets);
        for (size_t i = 0; i < blocks; ++i) {
            room_->targets[i] = {room_->blocks[i], nullptr, 0};
            room_->marks[mark_of(reinterpret_cast<uintptr_t>(room_->blocks[i].address))] = 1;
        }
        targets_ = missing_ = blocks;
        if (blocks == 0) return;
        add_modules();
        add_functions();
        for (uint32_t number = 0; number < nodes_ && !over_ && missing_ > 0; ++number) {
            current_ = number;
            PyObject* object = room_->nodes[number].object;
            Py_TYPE(object)->tp_traverse(object, visit, this);
        }
        for (size_t i = 0; i < targets_; ++i) write(room_->targets[i]);
    }

  private:
    static int visit(PyObject* object, void* context) {
        auto* search = static_cast<Search*>(context);
        search->meet(object, search->current_);
        return search->over_ || search->missing_ == 0 ? 1 : 0;
    }

    // The program's own module comes first: of two chains that are equally long it is the one.
    void add_modules() {
        PyObject* modules = PyImport_GetModuleDict();
        if (!modules || !PyDict_CheckExact(modules)) return;
        for (const bool main : {true, false}) {
            PyObject* name = nullptr;
            PyObject* module = nullptr;
            for (Py_ssize_t place = 0; PyDict_Next(modules, &place, &name, &module);) {
                if (!PyUnicode_CheckExact(name) || !PyModule_Check(module)) continue;
                const std::string text = text_of(name, kMostText);
                if ((text == "__main__") == main && text.rfind("tachograph", 0) != 0)
                    add_root(module, {name, nullptr});
            }
        }
    }

    void add_functions() {
        PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
        for (; thread; thread = PyThreadState_Next(thread))
            tg_visit_locals(
                thread,
                [](PyObject* value, PyObject* code, int variable, void* context) {
                    auto* search = static_cast<Search*>(context);
                    PyObject* name = tg_name_of_local(code, variable);
                    return name && search->add_root(value, {name, code}) ? 0 : 1;
                },
                this);
    }

    bool add_root(PyObject* object, const Root& root) {
        if (roots_ == kMostRoots) return false;
        room_->roots[roots_] = root;
        meet(object, kRoot | roots_++);
        return !over_;
    }

    void meet(PyObject* object, uint32_t parent) {
        if (!object) return;
        if (++met_ % kAsked == 0 && read_clock(CLOCK_THREAD_CPUTIME_ID) - began_cpu_ns_ > kMostNs)
            over_ = true;
        for (const uintptr_t header : kHeaders)
            compare(reinterpret_cast<uintptr_t>(object) - header, object, parent);
        PyTypeObject* type = Py_TYPE(object);
        if (holds_nothing(type)) return;
        if (!is_traversed(object)) {
            compare_body(object, parent);
            if (PyObject* base = base_of_array(object)) meet(base, parent);
            return;
        }
        if (is_known(object)) return;
        if (nodes_ == kMostObjects) {
            full_ = true;
            return;
        }
        room_->nodes[nodes_] = {object, parent};
        room_->places[place_] = ++nodes_;
        compare_body(object, parent);
    }

    // The array that a view of numpy's is of: arrays are not the garbage collector's.
    static PyObject* base_of_array(PyObject* object) {
        constexpr size_t kBase = 48;  // PyArrayObject_fields.base
        const PyTypeObject* type = Py_TYPE(object);
        if (strcmp(type->tp_name, "numpy.ndarray") != 0 ||
            type->tp_basicsize < static_cast<Py_ssize_t>(kBase + sizeof(void*)))
            return nullptr;
        PyObject* base = nullptr;
        memcpy(&base, reinterpret_cast<const char*>(object) + kBase, sizeof base);
        return base != object ? base : nullptr;
    }

    bool is_known(const PyObject* object) {
        const auto address = reinterpret_cast<uintptr_t>(object);
        constexpr uint32_t kPlaces = 2 * kMostObjects;
        place_ = static_cast<uint32_t>((address >> 4) * 0x9E3779B97F4A7C15ull >> 40) % kPlaces;
        for (; room_->places[place_] != 0; place_ = (place_ + 1) % kPlaces)
            if (room_->nodes[room_->places[place_] - 1].object == object) return true;
        return false;
    }

    void compare(uintptr_t address, PyObject* object, uint32_t parent) {
        if (room_->marks[mark_of(address)] == 0) return;
        for (size_t i = 0; i < targets_; ++i) {
            Target& target = room_->targets[i];
            if (target.owner || reinterpret_cast<uintptr_t>(target.block.address) != address)
                continue;
            target.owner = object;
            target.parent = parent;
            --missing_;
        }
    }

    // A list's items, a dict's table, an array's data: blocks that an object points at.
    void compare_body(PyObject* object, uint32_t parent) {
        uintptr_t words[kMostBody / sizeof(uintptr_t)];
        const Py_ssize_t size = Py_TYPE(object)->tp_basicsize;
        const auto bytes = static_cast<size_t>(size < kMostBody ? size : kMostBody);
        // Guarded: a type may claim more than an object of its own making has.
        if (!api_->read(words, object, bytes)) return;
        for (size_t word = 2; word < bytes / sizeof(uintptr_t); ++word)
            compare(words[word], object, parent);
    }

    // ------------------------------------------------------------------ what is written

    void write(const Target& target) {
        tg_referrer link{};
        link.time_ns = began_ns_;
        link.size = target.block.size;
        link.stack = target.block.stack;
        link.chain = g_chains++;
        if (!target.owner) {
            link.role = over_ || full_ ? TG_REFERRER_UNFINISHED : TG_REFERRER_UNREACHED;
            return tell(&link, {}, {});
        }
        uint32_t depth = 1;
        uint32_t at = target.parent;
        for (; (at & kRoot) == 0; at = room_->nodes[at].parent) ++depth;
        const Root& root = room_->roots[at & ~kRoot];
        if (!root.code) --depth;  // the module is the root itself
        link.role = root.code ? TG_REFERRER_FRAME : TG_REFERRER_MODULE;
        tell(&link,
             root.code ? text_of(reinterpret_cast<PyCodeObject*>(root.code)->co_qualname, kMostText)
                       : "module",
             text_of(root.name, kMostText));
        // From the object back to the root. Links in the middle of a long chain are left out.
        link.role = TG_REFERRER_OBJECT;
        PyObject* child = target.owner;
        uint32_t parent = target.parent;
        for (uint32_t number = depth; number > 0; --number) {
            const bool top = (parent & kRoot) != 0;
            PyObject* holder = top ? nullptr : room_->nodes[parent].object;
            const bool table = holder && child != target.owner && is_dict_of(holder, child);
            if (!table && (number < kMostLinks / 2 || depth - number < kMostLinks / 2)) {
                link.link = static_cast<uint16_t>(number < UINT16_MAX ? number : UINT16_MAX);
                tell(&link, type_of(child), top ? "" : name_in(holder, child, is_table(parent)));
            }
            if (top) break;
            child = holder;
            parent = room_->nodes[parent].parent;
        }
    }

    // Whether the node is the dict of the object that refers to it.
    bool is_table(uint32_t node) const {
        const uint32_t above = room_->nodes[node].parent;
        return (above & kRoot) == 0 &&
               is_dict_of(room_->nodes[above].object, room_->nodes[node].object);
    }

    static bool is_dict_of(PyObject* owner, PyObject* dict) {
        if (!PyDict_CheckExact(dict)) return false;
        if (PyModule_Check(owner)) return PyModule_GetDict(owner) == dict;
        if (PyType_Check(owner)) return reinterpret_cast<PyTypeObject*>(owner)->tp_dict == dict;
        return tg_dict_of(owner) == dict;
    }

    // The attribute of a slot that refers to an object.
    static const char* member(PyObject* owner, PyObject* value) {
        for (PyTypeObject* type = Py_TYPE(owner); type; type = type->tp_base)
            for (const PyMemberDef* each = type->tp_members; each && each->name; ++each) {
                if (each->type != T_OBJECT && each->type != T_OBJECT_EX) continue;
                PyObject* found = nullptr;
                memcpy(&found, reinterpret_cast<const char*>(owner) + each->offset, sizeof found);
                if (found == value) return each->name;
            }
        return nullptr;
    }

    // How an object refers to another, as Python writes it; empty if that is not known.
    static std::string name_in(PyObject* owner, PyObject* child, bool attributes) {
        if (PyDict_Check(owner)) {
            PyObject* key = nullptr;
            PyObject* value = nullptr;
            for (Py_ssize_t place = 0, passed = 0;
                 PyDict_Next(owner, &place, &key, &value) && passed < kMostPassed; ++passed) {
                if (key == child) return " key";
                if (value == child) return key_text(key, attributes);
            }
            return {};
        }
        if (PyList_Check(owner) || PyTuple_Check(owner)) {
            const Py_ssize_t size = Py_SIZE(owner);
            const bool list = PyList_Check(owner);
            for (Py_ssize_t i = 0; i < size && i < kMostPassed; ++i)
                if ((list ? PyList_GET_ITEM(owner, i) : PyTuple_GET_ITEM(owner, i)) == child)
                    return "[" + std::to_string(i) + "]";
            return {};
        }
        if (PyCell_Check(owner) && PyCell_GET(owner) == child) return ".cell_contents";
        if (PyObject* name = tg_inline_attribute(owner, child))
            return "." + text_of(name, kMostText);
        if (const char* name = member(owner, child)) return std::string(".") + name;
        return {};
    }

    static std::string key_text(PyObject* key, bool attributes) {
        if (PyUnicode_CheckExact(key)) {
            const std::string text = text_of(key, kMostText / 2);
            return attributes ? "." + text : "['" + text + "']";
        }
        if (PyLong_CheckExact(key)) {
            int overflow = 0;
            const long number = PyLong_AsLongAndOverflow(key, &overflow);
            if (overflow == 0) return "[" + std::to_string(number) + "]";
        }
        return std::string("[") + Py_TYPE(key)->tp_name + "]";
    }

    static std::string type_of(PyObject* object) {
        return std::string(Py_TYPE(object)->tp_name).substr(0, kMostText);
    }

    // The first characters of a string, in UTF-8; what cannot be shown is a question mark.
    static std::string text_of(PyObject* string, size_t most) {
        std::string text;
        if (!string || !PyUnicode_Check(string) || !PyUnicode_IS_COMPACT(string)) return text;
        const auto length = static_cast<size_t>(PyUnicode_GET_LENGTH(string));
        for (size_t i = 0; i < length && i < most; ++i) {
            const Py_UCS4 c = PyUnicode_READ_CHAR(string, static_cast<Py_ssize_t>(i));
            if (c < 0x20 || c == 0x7F || (c >= 0xD800 && c < 0xE000)) {
                text += '?';
            } else if (c < 0x80) {
                text += static_cast<char>(c);
            } else if (c < 0x800) {
                text += static_cast<char>(0xC0 | c >> 6);
                text += static_cast<char>(0x80 | (c & 0x3F));
            } else if (c < 0x10000) {
                text += static_cast<char>(0xE0 | c >> 12);
                text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
                text += static_cast<char>(0x80 | (c & 0x3F));
            } else {
                text += static_cast<char>(0xF0 | c >> 18);
                text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
                text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
                text += static_cast<char>(0x80 | (c & 0x3F));
            }
        }
        return length > most ? text + "..." : text;
    }

    void tell(tg_referrer* link, const std::string& type, const std::string& name) {
        link->type = type.data();
        link->type_length = static_cast<uint16_t>(type.size());
        link->name = name.data();
        link->name_length = static_cast<uint16_t>(name.size());
        api_->referrer(link);
    }

    const tg_api* api_;
    Room* room_;
    int64_t began_ns_;
    const int64_t began_cpu_ns_;
    size_t targets_ = 0;
    size_t missing_ = 0;
    uint32_t nodes_ = 0;
    uint32_t roots_ = 0;
    uint32_t current_ = 0;
    uint32_t place_ = 0;
    uint32_t met_ = 0;
    bool over_ = false;
    bool full_ = false;
};

}  // namespace

void search(const tg_api* api) {
    const auto room =
        static_cast<uintptr_t>(syscall(SYS_mmap, nullptr, sizeof(Room), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (room == static_cast<uintptr_t>(-1)) return;
    Search(api, reinterpret_cast<Room*>(room)).run();
    syscall(SYS_munmap, room, sizeof(Room));
}

}  // namespace tachograph::referrers

#include "current_span.h"

#include "reading.h"

#include <atomic>

namespace tachograph {
namespace {

// A context is a hash array mapped trie (Python/hamt.c), whose nodes have no header that an
// extension may use on every version. They have been like this since 3.7.
constexpr unsigned kBits = 5;  // of the hash, for each level
constexpr uint32_t kFanout = 1u << kBits;
constexpr size_t kMostLevels = 8;
constexpr size_t kBitmap = sizeof(PyVarObject);          // PyHamtNode_Bitmap.b_bitmap: 32 bits
constexpr size_t kPairs = kBitmap + 8;                   // its keys and values, in turns
constexpr size_t kChildren = sizeof(PyObject);           // PyHamtNode_Array.a_array
constexpr size_t kCollisions = sizeof(PyVarObject) + 8;  // PyHamtNode_Collision.c_array
constexpr size_t kMostCollisions = 64;                   // keys and values

struct Followed {
    const uint8_t* variable;
    const uint8_t* type;
    size_t number_offset;
    uint32_t hash;
};
std::atomic<const Followed*> g_followed{nullptr};

// As hamt_hash has it.
uint32_t folded(Py_hash_t hash) {
    const auto bits = static_cast<uint64_t>(hash);
    const auto low = static_cast<uint32_t>(bits) ^ static_cast<uint32_t>(bits >> 32);
    return low == UINT32_MAX ? UINT32_MAX - 1 : low;
}

}  // namespace

void follow_spans(PyObject* variable, PyTypeObject* type, size_t number_offset) {
    const Py_hash_t hash = PyObject_Hash(variable);
    if (hash == -1) {
        PyErr_Clear();
        return;
    }
    // Never freed: handlers use them until the very end.
    auto* followed =
        new Followed{reinterpret_cast<const uint8_t*>(variable),
                     reinterpret_cast<const uint8_t*>(type), number_offset, folded(hash)};
    const Followed* none = nullptr;
    if (!g_followed.compare_exchange_strong(none, followed, std::memory_order_release)) {
        delete followed;
        return;
    }
    Py_INCREF(variable);
    Py_INCREF(type);
}

uint32_t CurrentSpan::of_thread(const uint8_t* tstate) const {
    const uint8_t* context = nullptr;
    if (!g_followed.load(std::memory_order_relaxed) ||
        !load(api_, tstate, at_->tstate_context, &context))
        return 0;
    return of_context(context);
}

uint32_t CurrentSpan::of_context(const uint8_t* context) const {
    const Followed* followed = g_followed.load(std::memory_order_acquire);
    const uint8_t* type = nullptr;
    const uint8_t* variables = nullptr;
    const uint8_t* root = nullptr;
    if (!followed || !plausible(context) || !load(api_, context, at_->object_type, &type) ||
        type != reinterpret_cast<const uint8_t*>(&PyContext_Type) ||
        !load(api_, context, at_->context_variables, &variables) || !plausible(variables) ||
        !load(api_, variables, at_->variables_root, &root))
        return 0;
    const uint8_t* span = find(root, followed->variable, followed->hash);
    const uint8_t* number = nullptr;
    uint32_t value = 0;
    if (!plausible(span) || !load(api_, span, at_->object_type, &type) || type != followed->type ||
        !load(api_, span, followed->number_offset, &number) || !plausible(number) ||
        !tg_small_number(number, api_->read, &value))
        return 0;
    return value;
}

// The value of a variable; NULL if it has none here.
const uint8_t* CurrentSpan::find(const uint8_t* node, const uint8_t* variable,
                                 uint32_t hash) const {
    struct Pair {
        const uint8_t* key;
        const uint8_t* value;
    };
    for (size_t level = 0; level < kMostLevels && plausible(node); ++level) {
        const uint32_t place = level * kBits < 32 ? hash >> (level * kBits) & (kFanout - 1) : 0;
        const Kind kind = kind_of(node);
        if (kind == Kind::many) {
            if (!load(api_, node, kChildren + place * sizeof(void*), &node)) return nullptr;
            continue;
        }
        if (kind == Kind::few) {
            uint32_t bitmap = 0;
            Pair pair{};
            if (!load(api_, node, kBitmap, &bitmap) || (bitmap >> place & 1) == 0) return nullptr;
            const auto before =
                static_cast<size_t>(__builtin_popcount(bitmap & ((1u << place) - 1)));
            if (!load(api_, node, kPairs + before * sizeof pair, &pair)) return nullptr;
            if (pair.key) return pair.key == variable ? pair.value : nullptr;
            node = pair.value;
            continue;
        }
        int64_t count = 0;
        if (kind == Kind::other || !load(api_, node, offsetof(PyVarObject, ob_size), &count))
            return nullptr;
        for (size_t i = 0; i < kMostCollisions && static_cast<int64_t>(i) < count; i += 2) {
            Pair pair{};
            if (!load(api_, node, kCollisions + i * sizeof(void*), &pair)) return nullptr;
            if (pair.key == variable) return pair.value;
        }
        return nullptr;
    }
    return nullptr;
}

// By the name of its type, which has no symbol that an extension may use.
CurrentSpan::Kind CurrentSpan::kind_of(const uint8_t* node) const {
    static std::atomic<const uint8_t*> few{nullptr};
    static std::atomic<const uint8_t*> many{nullptr};
    const uint8_t* type = nullptr;
    const uint8_t* name = nullptr;
    if (!load(api_, node, at_->object_type, &type) || !plausible(type)) return Kind::other;
    if (type == few.load(std::memory_order_relaxed)) return Kind::few;
    if (type == many.load(std::memory_order_relaxed)) return Kind::many;
    char text[20];
    if (!load(api_, type, at_->type_name, &name) || !api_->read(text, name, sizeof text))
        return Kind::other;
    if (memcmp(text, "hamt_bitmap_node", 17) == 0) {
        few.store(type, std::memory_order_relaxed);
        return Kind::few;
    }
    if (memcmp(text, "hamt_array_node", 16) == 0) {
        many.store(type, std::memory_order_relaxed);
        return Kind::many;
    }
    return memcmp(text, "hamt_collision_node", 20) == 0 ? Kind::collision : Kind::other;
}

}  // namespace tachograph

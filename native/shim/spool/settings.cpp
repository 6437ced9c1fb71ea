#include "spool/settings.h"

#include "base/kernel_text.h"
#include "base/large_data.h"
#include "spool/options_table.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tachograph::settings {
namespace {

constexpr char kSpool[] = "TACHOGRAPH_SPOOL=";
constexpr char kConfig[] = "TACHOGRAPH_CONFIG=";
constexpr char kParent[] = "TACHOGRAPH_PARENT=";
constexpr char kPreload[] = "LD_PRELOAD=";
// The stack of a vfork child is its parent's, and may be small.
constexpr size_t kMostEntries = 16 * 1024;
constexpr size_t kMostPreload = 16 * 1024;
// A sanitizer's runtime must be there before anything that was built with it, as this library may
// be for its tests.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kTheirsFirst = true;
#else
constexpr bool kTheirsFirst = false;
#endif

struct State {
    char spool[600] = {};  // with the name and the sign in front
    char config[16 * 1024] = {};
    char library[600] = {};  // the path only
    char identity[48] = {};  // "PID-TIME" of the latest process that was listed, or empty
    tg_options options = kUnsetOptions;
    const char* unusable = nullptr;
    std::atomic<bool> passed_to_children{false};
    std::atomic<bool> from_inside{false};
};
constinit TG_LARGE_DATA State g;

bool begins(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }

bool is_ours(const char* entry) {
    return begins(entry, kSpool) || begins(entry, kConfig) || begins(entry, kParent);
}

template <size_t N>
bool keep(char (&to)[N], const char* entry) {
    const size_t length = strlen(entry);
    if (length >= N) return false;
    memcpy(to, entry, length + 1);
    return true;
}

// Where our library stands in a list for the loader, which takes colons and blanks; nullptr: not.
const char* find_library(const char* list) {
    const size_t length = strlen(g.library);
    for (const char* at = list; length > 0 && *at;) {
        const size_t item = strcspn(at, ": ");
        if (item == length && memcmp(at, g.library, length) == 0) return at;
        at += item;
        at += strspn(at, ": ");
    }
    return nullptr;
}

// Takes our library out of "LD_PRELOAD=..."; false if the variable was not there without it.
bool restore_preload(char* entry) {
    char* list = entry + strlen(kPreload);
    auto* at = const_cast<char*>(find_library(list));
    if (!at) return true;
    char* behind = at + strlen(g.library);
    if (*behind == 0 && at == list) return false;
    if (*behind != 0)
        ++behind;  // the separator
    else
        --at;
    memmove(at, behind, strlen(behind) + 1);
    return true;
}

Parent parent_of(const char* text) {
    Parent parent;
    char* end = nullptr;
    const long long pid = strtoll(text, &end, 10);
    if (end == text || *end != '-') return parent;
    const char* second = end + 1;
    const long long time = strtoll(second, &end, 10);
    if (end == second || *end != 0) return parent;
    return {pid, time};
}

// A program with set-id bits or file capabilities: who started it may not tell it what to do.
bool has_other_rights() {
    return getauxval(AT_SECURE) != 0 || getuid() != geteuid() || getgid() != getegid();
}

// "12.5" at `at`, whatever the program's locale is; returns the place behind it.
const char* read_fraction(const char* at, double* value) {
    int64_t whole = 0;
    const char* end = read_decimal(at, &whole);
    int64_t divisor = 1;
    if (*end == '.') {
        // All digits as one number, divided once: the nearest double.
        for (++end; *end >= '0' && *end <= '9'; ++end, divisor *= 10)
            whole = whole * 10 + (*end - '0');
    }
    *value = static_cast<double>(whole) / static_cast<double>(divisor);
    return end;
}

// Sets a field of the options from the text of its value; false if that is none.
bool read_option(const OptionRow& row, const char* text, size_t length) {
    void* field = reinterpret_cast<char*>(&g.options) + row.place;
    const char* const end = text + length;
    int64_t number = 0;
    switch (row.kind) {
        case OptionKind::text:
            *static_cast<tg_text_option*>(field) = {text, length};
            return true;
        case OptionKind::word:
            for (const OptionWord* word = row.words; word < row.words + row.word_count; ++word) {
                if (strlen(word->text) != length || memcmp(text, word->text, length) != 0) continue;
                *static_cast<int*>(field) = word->value;
                return true;
            }
            return false;
        case OptionKind::decimal:
            return length > 0 && length <= 15 &&
                   read_fraction(text, static_cast<double*>(field)) == end;
        case OptionKind::number:
            if (length == 0 || length > 18 || read_decimal(text, &number) != end) return false;
            *static_cast<int64_t*>(field) = number;
            return true;
        case OptionKind::flag:
            if (length != 1 || (*text != '0' && *text != '1')) return false;
            *static_cast<int*>(field) = *text - '0';
            return true;
    }
    return false;
}

// The value of a key; nullptr: it is not set.
const char* find_value(const char* key, size_t* length) {
    const size_t key_length = strlen(key);
    for (const char* at = config(); *at;) {
        const size_t item = strcspn(at, ",");
        if (item > key_length && memcmp(at, key, key_length) == 0 && at[key_length] == '=') {
            *length = item - key_length - 1;
            return at + key_length + 1;
        }
        at += item + (at[item] == ',' ? 1 : 0);
    }
    return nullptr;
}

void read_options() {
    g.options = kUnsetOptions;
    g.unusable = nullptr;
    for (const OptionRow& row : kOptionRows) {
        size_t length = 0;
        const char* text = find_value(row.key, &length);
        const bool usable = text ? read_option(row, text, length) : !row.required;
        if (!usable && !g.unusable) g.unusable = row.key;
    }
}

}  // namespace

void read_environment(char** environment, Parent* parent) {
    if (!environment) return;
    const bool obeyed = !has_other_rights();
    Dl_info info;
    if (dladdr(&g, &info) && info.dli_fname) keep(g.library, info.dli_fname);
    char** to = environment;
    for (char** from = environment; *from; ++from) {
        if (obeyed && begins(*from, kSpool)) keep(g.spool, *from);
        if (obeyed && begins(*from, kConfig)) keep(g.config, *from);
        if (obeyed && begins(*from, kParent)) *parent = parent_of(*from + strlen(kParent));
        if (is_ours(*from) || (begins(*from, kPreload) && !restore_preload(*from))) continue;
        *to++ = *from;
    }
    *to = nullptr;
    read_options();
    g.passed_to_children.store(are_set() && g.library[0] != 0 && g.options.children != 0,
                               std::memory_order_relaxed);
}

void set_parent_of_children(const Parent& parent) {
    char* at = write_decimal(g.identity, static_cast<uint64_t>(parent.pid));
    *at++ = '-';
    *write_decimal(at, static_cast<uint64_t>(parent.time_ns)) = 0;
}

bool set_from_inside(const char* spool, const char* config) {
    const size_t length = strlen(spool);
    if (length >= sizeof g.spool - sizeof kSpool ||
        strlen(config) >= sizeof g.config - sizeof kConfig)
        return false;
    snprintf(g.spool, sizeof g.spool, "%s%s", kSpool, spool);
    snprintf(g.config, sizeof g.config, "%s%s", kConfig, config);
    read_options();
    g.from_inside.store(true, std::memory_order_release);
    return true;
}

void clear() {
    g.spool[0] = g.config[0] = g.identity[0] = 0;
    g.from_inside.store(false, std::memory_order_release);
}

bool are_from_inside() { return g.from_inside.load(std::memory_order_acquire); }

bool are_set() { return g.spool[0] != 0 && g.config[0] != 0; }
bool pass_to_children() { return g.passed_to_children.load(std::memory_order_relaxed); }
void stop_passing_to_children() { g.passed_to_children.store(false, std::memory_order_relaxed); }
const char* spool() { return g.spool + strlen(kSpool); }
const char* config() { return g.config + strlen(kConfig); }
const char* library() { return g.library; }
const tg_options& options() { return are_set() ? g.options : kUnsetOptions; }
const char* unusable() { return g.unusable; }

Size size_of_child_environment(char* const* environment) {
    Size size;
    if (!pass_to_children()) return size;
    bool preload = false;
    size_t count = 0;
    for (; environment && environment[count]; ++count) {
        // A recording within the recording: that program is the inner one's.
        if (begins(environment[count], kSpool) && strcmp(environment[count], g.spool) != 0)
            return {};
        if (!begins(environment[count], kPreload)) continue;
        preload = true;
        size.text += strlen(environment[count]) + strlen(g.library) + 2;
    }
    if (!preload) size.text = strlen(kPreload) + strlen(g.library) + 1;
    size.text += strlen(kParent) + strlen(g.identity) + 1;
    size.entries = count + 5;  // at most four of ours, and the end
    return size.entries > kMostEntries || size.text > kMostPreload ? Size{} : size;
}

void fill_child_environment(char* const* environment, char** entries, char* text) {
    const auto put = [&text](const char* more) {
        const size_t length = strlen(more);
        memcpy(text, more, length + 1);
        text += length;
    };
    const auto begin = [&] { *entries++ = text; };
    bool preload = false;
    for (char* const* from = environment; from && *from; ++from) {
        if (is_ours(*from)) continue;
        const char* list = *from + strlen(kPreload);
        if (!begins(*from, kPreload) || find_library(list)) {
            preload = preload || begins(*from, kPreload);
            *entries++ = *from;
            continue;
        }
        // What was set to nothing has a separator behind our library, what was not set has none.
        preload = true;
        begin();
        const bool first = kTheirsFirst && *list != 0;
        put(kPreload);
        put(first ? list : g.library);
        put(":");
        put(first ? g.library : list);
        ++text;
    }
    if (!preload) {
        begin();
        put(kPreload);
        put(g.library);
        ++text;
    }
    *entries++ = g.spool;
    *entries++ = g.config;
    if (g.identity[0] != 0) {
        begin();
        put(kParent);
        put(g.identity);
        ++text;
    }
    *entries = nullptr;
}

}  // namespace tachograph::settings

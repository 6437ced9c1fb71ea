#include "spool/settings.h"

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

struct State {
    char spool[600] = {};  // with the name and the sign in front
    char config[16 * 1024] = {};
    char library[600] = {};  // the path only
    char identity[48] = {};  // "PID-TIME" of the latest process that was listed, or empty
    std::atomic<bool> children{false};
    std::atomic<bool> given{false};
};
constinit State g;

bool begins(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }

bool ours(const char* entry) {
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

}  // namespace

void take(char** environment, Parent* parent) {
    if (!environment) return;
    const bool obeyed = !has_other_rights();
    Dl_info info;
    if (dladdr(&g, &info) && info.dli_fname) keep(g.library, info.dli_fname);
    char** to = environment;
    for (char** from = environment; *from; ++from) {
        if (obeyed && begins(*from, kSpool)) keep(g.spool, *from);
        if (obeyed && begins(*from, kConfig)) keep(g.config, *from);
        if (obeyed && begins(*from, kParent)) *parent = parent_of(*from + strlen(kParent));
        if (ours(*from) || (begins(*from, kPreload) && !restore_preload(*from))) continue;
        *to++ = *from;
    }
    *to = nullptr;
    const char* text = nullptr;
    const bool off = value("children", &text) == 1 && *text == '0';
    g.children.store(known() && g.library[0] != 0 && !off, std::memory_order_relaxed);
}

void be_parent(const Parent& parent) {
    snprintf(g.identity, sizeof g.identity, "%lld-%lld", static_cast<long long>(parent.pid),
             static_cast<long long>(parent.time_ns));
}

bool give(const char* spool, const char* config) {
    const size_t length = strlen(spool);
    if (length >= sizeof g.spool - sizeof kSpool ||
        strlen(config) >= sizeof g.config - sizeof kConfig)
        return false;
    snprintf(g.spool, sizeof g.spool, "%s%s", kSpool, spool);
    snprintf(g.config, sizeof g.config, "%s%s", kConfig, config);
    g.given.store(true, std::memory_order_release);
    return true;
}

void take_back() {
    g.spool[0] = g.config[0] = g.identity[0] = 0;
    g.given.store(false, std::memory_order_release);
}

bool given() { return g.given.load(std::memory_order_acquire); }

bool known() { return g.spool[0] != 0 && g.config[0] != 0; }
bool children() { return g.children.load(std::memory_order_relaxed); }
void leave() { g.children.store(false, std::memory_order_relaxed); }
const char* spool() { return g.spool + strlen(kSpool); }
const char* config() { return g.config + strlen(kConfig); }
const char* library() { return g.library; }

size_t value(const char* key, const char** text) {
    const size_t length = strlen(key);
    if (!known()) return 0;
    for (const char* at = config(); *at;) {
        const size_t item = strcspn(at, ",");
        if (item > length && memcmp(at, key, length) == 0 && at[length] == '=') {
            *text = at + length + 1;
            return item - length - 1;
        }
        at += item + (at[item] == ',' ? 1 : 0);
    }
    return 0;
}

Needs needs(char* const* environment) {
    Needs needs;
    if (!children()) return needs;
    bool preload = false;
    size_t count = 0;
    for (; environment && environment[count]; ++count) {
        // A recording within the recording: that program is the inner one's.
        if (begins(environment[count], kSpool) && strcmp(environment[count], g.spool) != 0)
            return {};
        if (!begins(environment[count], kPreload)) continue;
        preload = true;
        needs.text += strlen(environment[count]) + strlen(g.library) + 2;
    }
    if (!preload) needs.text = strlen(kPreload) + strlen(g.library) + 1;
    needs.text += strlen(kParent) + strlen(g.identity) + 1;
    needs.entries = count + 5;  // at most four of ours, and the end
    return needs.entries > kMostEntries || needs.text > kMostPreload ? Needs{} : needs;
}

void fill(char* const* environment, char** entries, char* text) {
    const auto put = [&text](const char* more) {
        const size_t length = strlen(more);
        memcpy(text, more, length + 1);
        text += length;
    };
    const auto begin = [&] { *entries++ = text; };
    bool preload = false;
    for (char* const* from = environment; from && *from; ++from) {
        if (ours(*from)) continue;
        const char* list = *from + strlen(kPreload);
        if (!begins(*from, kPreload) || find_library(list)) {
            preload = preload || begins(*from, kPreload);
            *entries++ = *from;
            continue;
        }
        // What was set to nothing has a separator behind our library, what was not set has none.
        preload = true;
        begin();
        put(kPreload);
        put(g.library);
        put(":");
        put(list);
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

#include "stacks/sources.h"

#include "base/kernel.h"

#include <atomic>
#include <cstring>

// The linker's marks around the section of the table.
extern "C" const tachograph::Source* const __start_tg_sources[]
    __attribute__((visibility("hidden")));
extern "C" const tachograph::Source* const __stop_tg_sources[]
    __attribute__((visibility("hidden")));

namespace tachograph::sources {
namespace {

constexpr size_t kMostSources = 16;

// What the ticks of each have taken, by its place in the table.
constinit std::atomic<int64_t> g_ticks_ns[kMostSources]{};

size_t known() { return static_cast<size_t>(__stop_tg_sources - __start_tg_sources); }

template <typename F, typename... A>
void call(F Source::* function, A... arguments) {
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at)
        if ((*at)->*function) ((*at)->*function)(arguments...);
}

// The first answer that is not `good`.
template <typename R, typename F, typename... A>
R first_bad(R good, F Source::* function, A&... arguments) {
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at) {
        if (!((*at)->*function)) continue;
        const R answer = ((*at)->*function)(arguments...);
        if (answer != good) return answer;
    }
    return good;
}

}  // namespace

bool prepare(const tg_options& options) {
    return known() <= kMostSources && first_bad(true, &Source::prepare, options);
}

int start() { return first_bad(0, &Source::start); }
void pause(bool yes) { call(&Source::pause, yes); }

void sampled(const Sample& sample) {
    for (const Source* const* at = __start_tg_sources; at != __stop_tg_sources; ++at)
        if ((*at)->sampled) (*at)->sampled(sample);
}

bool tick(int64_t now_ns) {
    bool calm = true;
    int64_t before_ns = kernel::own_cpu_ns();
    for (size_t place = 0; place < known(); ++place) {
        const Source& source = *__start_tg_sources[place];
        if (!source.tick) continue;
        if (!source.tick(now_ns)) calm = false;
        const int64_t after_ns = kernel::own_cpu_ns();
        g_ticks_ns[place].fetch_add(after_ns - before_ns, std::memory_order_relaxed);
        before_ns = after_ns;
    }
    return calm;
}

bool keep() { return first_bad(true, &Source::keep); }
void window_ends() { call(&Source::window_ends); }
void flush(bool exiting) { call(&Source::flush, exiting); }
void finish() { call(&Source::finish); }
void stop() { call(&Source::stop); }
void uninstall() { call(&Source::uninstall); }

Cost cost(const char* name) {
    Cost sum;
    for (size_t place = 0; place < known(); ++place) {
        const Source& source = *__start_tg_sources[place];
        if (name && strcmp(name, source.name) != 0) continue;
        if (source.cost) sum.handlers_ns += source.cost();
        sum.ticks_ns += g_ticks_ns[place].load(std::memory_order_relaxed);
    }
    return sum;
}

void watch(threads::Thread* thread) { call(&Source::watch, thread); }
void unwatch(threads::Thread* thread) { call(&Source::unwatch, thread); }
void enter(threads::Thread* own, bool known) { call(&Source::enter, own, known); }
void leave(threads::Thread* own) { call(&Source::leave, own); }
void before_fork() { call(&Source::before_fork); }
void after_fork(bool in_child) { call(&Source::after_fork, in_child); }

void forget() {
    for (auto& ticks_ns : g_ticks_ns) ticks_ns.store(0, std::memory_order_relaxed);
    call(&Source::forget);
}

}  // namespace tachograph::sources
